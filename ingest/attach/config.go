package attach

import (
	"net/url"
	"regexp"
	"time"

	"github.com/minio/minio-go/v7/pkg/s3utils"

	"parley/config/secret"
	"parley/ingest/event"
)

// Config says where copies are kept. Start from DefaultConfig.
type Config struct {
	// Dir is the folder of the copies; it is made when the first one comes. With
	// a bucket, files wait there on their way to it.
	Dir string `yaml:"dir"`
	// MaxBytes is the size in bytes above which a file is not copied.
	MaxBytes int64 `yaml:"max_bytes"`
	// TTL is how long a link to a copy is good for.
	TTL time.Duration `yaml:"ttl"`
	// S3 is the bucket that copies are kept in; nil for none.
	S3 *S3 `yaml:"s3"`
}

// S3 is a bucket of a server that speaks Amazon's S3. It must be there already.
type S3 struct {
	// Endpoint is where the server stands, without a path.
	Endpoint string `yaml:"endpoint"`
	Bucket   string `yaml:"bucket"`
	// Region may be empty: the server is asked then.
	Region string `yaml:"region"`
	// AccessKey and SecretKey may read, write and delete objects of the bucket.
	AccessKey string       `yaml:"access_key"`
	SecretKey secret.Value `yaml:"secret_key"`
	// Prefix is what the objects' names begin with, a path without slashes at its
	// ends; it may be empty.
	Prefix string `yaml:"prefix"`
}

// DefaultConfig is what holds where the configuration says nothing.
func DefaultConfig() Config {
	return Config{Dir: "data/attachments", MaxBytes: 20 << 20, TTL: time.Hour}
}

// Validate returns every fault, by key, without any value.
func (c Config) Validate() event.FieldErrors {
	var faults event.FieldErrors
	check := func(ok bool, field, words string) {
		if !ok {
			faults = append(faults, event.FieldError{Field: field, Message: words})
		}
	}
	check(c.Dir != "", "dir", "must be a folder")
	check(c.MaxBytes > 0, "max_bytes", "must be more than 0")
	check(c.TTL > 0, "ttl", "must be more than 0s")
	if c.S3 == nil {
		return faults
	}
	check(isServer(c.S3.Endpoint), "s3.endpoint", "must be an http or https address without a path or credentials, such as https://s3.example.org")
	check(s3utils.CheckValidBucketNameStrict(c.S3.Bucket) == nil, "s3.bucket", "must be a bucket's name: 3 to 63 of a-z, 0-9, . and -")
	check(regionForm.MatchString(c.S3.Region), "s3.region", "must be a region such as eu-central-1, or empty")
	check(c.S3.AccessKey != "", "s3.access_key", "is required: the name of the key")
	check(!c.S3.SecretKey.IsZero(), "s3.secret_key", "is required: the secret that belongs to access_key")
	check(prefixForm.MatchString(c.S3.Prefix), "s3.prefix", "must be a path such as parley/files, of letters, digits and ._- between single slashes, or empty")
	return faults
}

var (
	regionForm = regexp.MustCompile(`^[a-z0-9-]*$`)
	// prefixForm leaves out segments that begin with a dot, such as a way up.
	prefixForm = regexp.MustCompile(`^([A-Za-z0-9_-][A-Za-z0-9._-]*(/[A-Za-z0-9_-][A-Za-z0-9._-]*)*)?$`)
)

// isServer tells an http or https address that names a server alone.
func isServer(s string) bool {
	u, err := url.Parse(s)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" && u.User == nil &&
		u.RawQuery == "" && u.Fragment == "" && (u.Path == "" || u.Path == "/")
}
