package config_test

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"parley/config/secret"
	"parley/ingest/attach"
)

// TestAttachments loads attachments with and without a bucket.
func TestAttachments(t *testing.T) {
	t.Setenv("SECRET", "s3cret")
	c := load(t, `
attachments:
  max_bytes: 1MiB
  s3: {endpoint: "http://127.0.0.1:9000/", bucket: our.files, region: eu-central-1, access_key: AKIA, secret_key: "${SECRET}", prefix: parley/chat_1}
`, "")
	want := attach.DefaultConfig()
	want.MaxBytes, want.S3 = 1<<20, &attach.S3{
		Endpoint: "http://127.0.0.1:9000/", Bucket: "our.files", Region: "eu-central-1",
		AccessKey: "AKIA", SecretKey: secret.New("s3cret"), Prefix: "parley/chat_1",
	}
	if diff := cmp.Diff(want, c.Attachments, equalSecrets); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	if c := load(t, "attachments: {ttl: 2h}\n", ""); c.Attachments.S3 != nil || c.Attachments.TTL != 2*time.Hour ||
		c.Attachments.Dir != filepath.Join("data", "attachments") {
		t.Errorf("without a bucket: %+v", c.Attachments)
	}
}
