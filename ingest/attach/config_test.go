package attach

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"parley/config/secret"
)

// TestConfigFaults checks the required settings of a store of copies.
func TestConfigFaults(t *testing.T) {
	const pair = "s3.access_key s3.secret_key"
	s3 := func(change func(*S3)) func(*Config) {
		return func(c *Config) {
			c.S3 = &S3{Endpoint: "https://s3.example.org", Bucket: "our.files-1", AccessKey: "AKIA", SecretKey: secret.New("x")}
			change(c.S3)
		}
	}
	for name, c := range map[string]struct {
		change func(c *Config)
		want   string
	}{
		"the defaults":       {func(*Config) {}, ""},
		"nothing":            {func(c *Config) { *c = Config{} }, "dir max_bytes quota per_sender ttl"},
		"a bucket":           {s3(func(*S3) {}), ""},
		"a complete bucket":  {s3(func(s *S3) { s.Region, s.Prefix, s.Endpoint = "eu-1", "a.b/c_d-E/9", "http://[::1]:9000/" }), ""},
		"an empty bucket":    {s3(func(s *S3) { *s = S3{} }), "s3.endpoint s3.bucket " + pair},
		"no address":         {s3(func(s *S3) { s.Endpoint = "s3.example.org" }), "s3.endpoint"},
		"no web address":     {s3(func(s *S3) { s.Endpoint = "ftp://h" }), "s3.endpoint"},
		"a path":             {s3(func(s *S3) { s.Endpoint = "https://h/bucket" }), "s3.endpoint"},
		"credentials":        {s3(func(s *S3) { s.Endpoint = "https://a:b@h" }), "s3.endpoint"},
		"a query":            {s3(func(s *S3) { s.Endpoint = "https://h?x" }), "s3.endpoint"},
		"capitals":           {s3(func(s *S3) { s.Bucket = "Files" }), "s3.bucket"},
		"a bucket's path":    {s3(func(s *S3) { s.Bucket = "files/chat" }), "s3.bucket"},
		"a region's name":    {s3(func(s *S3) { s.Region = "Frankfurt" }), "s3.region"},
		"a parent directory": {s3(func(s *S3) { s.Prefix = "a/../b" }), "s3.prefix"},
		"a leading slash":    {s3(func(s *S3) { s.Prefix = "/a" }), "s3.prefix"},
		"a trailing slash":   {s3(func(s *S3) { s.Prefix = "a/" }), "s3.prefix"},
		"two slashes":        {s3(func(s *S3) { s.Prefix = "a//b" }), "s3.prefix"},
	} {
		settings := DefaultConfig()
		c.change(&settings)
		var got []string
		for _, fault := range settings.Validate() {
			got = append(got, fault.Field)
		}
		if diff := cmp.Diff(c.want, strings.Join(got, " ")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
