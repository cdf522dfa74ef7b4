package attach

import (
	"net/url"
	"regexp"
	"time"

	"github.com/minio/minio-go/v7/pkg/s3utils"

	"parley/config/secret"
	"parley/ingest/event"
)

// Config defines the place of the copies. Start from DefaultConfig.
type Config struct {
	// Dir is the folder of the copies; the first copy creates it. Files of a bucket or
	// of a shared store wait there until they are complete.
	Dir string `yaml:"dir"`
	// MaxBytes is the size in bytes above which a file is not copied.
	MaxBytes int64 `yaml:"max_bytes"`
	// Quota bounds the bytes of all copies in the folder, in the store, or of messages in the bucket.
	Quota int64 `yaml:"quota"`
	// PerSender bounds the bytes of one sender's files within an hour.
	PerSender int64 `yaml:"per_sender"`
	// TTL is how long a link to a copy is valid.
	TTL time.Duration `yaml:"ttl"`
	// S3 is the bucket of the copies; nil for none.
	S3 *S3 `yaml:"s3"`
}

// S3 is an existing bucket of a server that speaks Amazon's S3.
type S3 struct {
	// Endpoint is the server's address, without a path.
	Endpoint string `yaml:"endpoint"`
	Bucket   string `yaml:"bucket"`
	// Region is the bucket's region. If it is empty, the client asks the server.
	Region string `yaml:"region"`
	// AccessKey and SecretKey may read, write and delete objects of the bucket.
	AccessKey string       `yaml:"access_key"`
	SecretKey secret.Value `yaml:"secret_key"`
	// Prefix begins the names of all objects: a path without slashes at its ends, or empty.
	Prefix string `yaml:"prefix"`
}

// DefaultConfig returns the settings that apply without configuration.
func DefaultConfig() Config {
	return Config{Dir: "data/attachments", MaxBytes: 20 << 20, Quota: 10 << 30, PerSender: 200 << 20, TTL: time.Hour}
}

// Validate returns all faults by key. They hold no values.
func (c Config) Validate() event.FieldErrors {
	var faults event.FieldErrors
	faults.Check(c.Dir != "", "dir", "must be a folder")
	faults.Check(c.MaxBytes > 0, "max_bytes", "must be more than 0")
	faults.Check(c.Quota > 0, "quota", "must be more than 0")
	faults.Check(c.PerSender > 0, "per_sender", "must be more than 0")
	faults.Check(c.TTL > 0, "ttl", "must be more than 0s")
	if c.S3 == nil {
		return faults
	}
	faults.Check(isServer(c.S3.Endpoint), "s3.endpoint", "must be an http or https address without a path or credentials, such as https://s3.example.org")
	faults.Check(s3utils.CheckValidBucketNameStrict(c.S3.Bucket) == nil, "s3.bucket", "must be a bucket's name: 3 to 63 of a-z, 0-9, . and -")
	faults.Check(regionForm.MatchString(c.S3.Region), "s3.region", "must be a region such as eu-central-1, or empty")
	faults.Check(c.S3.AccessKey != "", "s3.access_key", "is required: the name of the key")
	faults.Check(!c.S3.SecretKey.IsZero(), "s3.secret_key", "is required: the secret that belongs to access_key")
	faults.Check(prefixForm.MatchString(c.S3.Prefix), "s3.prefix", "must be a path such as parley/files, of letters, digits and ._- between single slashes, or empty")
	return faults
}

var (
	regionForm = regexp.MustCompile(`^[a-z0-9-]*$`)
	// prefixForm excludes segments that begin with a dot, such as "..".
	prefixForm = regexp.MustCompile(`^([A-Za-z0-9_-][A-Za-z0-9._-]*(/[A-Za-z0-9_-][A-Za-z0-9._-]*)*)?$`)
)

// isServer reports whether s is an http or https address of a server, without a path.
func isServer(s string) bool {
	u, err := url.Parse(s)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" && u.User == nil &&
		u.RawQuery == "" && u.Fragment == "" && (u.Path == "" || u.Path == "/")
}
