package daemon_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"mime/multipart"
	"net"
	"net/http"
	"net/textproto"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"parley/ingest/attach/s3test"
	"parley/ingest/journal/postgres/postgrestest"
)

const theirToken = "canary-their-11d0c4-52b97e63"

// documentsPlan returns the plan of a daemon with the web workspaces ours and theirs, whose
// links are valid for an hour. A file has at most 2,000 bytes.
func documentsPlan(store, attachments string) plan {
	return plan{files: map[string]string{
		"parley.yaml": "listen: 127.0.0.1:0\nshutdown: 30s\nstore: " + store + "\nattachments: {dir: files, max_bytes: 2000" + attachments + "}\n" +
			"agents: [{id: helper, kind: openai, base_url: AGENT/v1, api_key: " + apiKey + ", model: m, system_prompt: \"\", notes: []}, {id: echo, kind: echo}]\n",
		"workspaces/theirs.yaml": "id: theirs\nplatform: web\nagent: echo\nweb: {tokens: [{id: mallory, token: " + theirToken + ", name: Mallory}]}\n",
	}}
}

// everyStore runs a test with a daemon of documentsPlan on each engine. The changes apply to the
// plan.
func everyStore(t *testing.T, test func(t *testing.T, h *harness), changes ...func(*plan)) {
	for name, store := range map[string]func(t *testing.T) string{
		"SQLite":     func(*testing.T) string { return "sqlite:data/parley.db" },
		"PostgreSQL": func(t *testing.T) string { return postgrestest.URL(t) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := documentsPlan(store(t), "")
			for _, change := range changes {
				change(&p)
			}
			test(t, open(t, p))
		})
	}
}

// request sends a request of the documents: a body with its content type, and further headers.
func (h *harness) request(method, address, token, contentType, body string, more ...string) answer {
	h.t.Helper()
	if strings.HasPrefix(address, "/") {
		address = h.url + address
	}
	request, err := http.NewRequestWithContext(h.ctx, method, address, strings.NewReader(body))
	if err != nil {
		h.t.Fatal(err)
	}
	request.Header.Set("Content-Type", contentType)
	for i := 0; i < len(more); i += 2 {
		request.Header.Set(more[i], more[i+1])
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	return h.send(request, nil)
}

// attachment is the answer to a file.
type attachment struct {
	Bucket, Path, URL string
	MimeType          string `json:"mime_type"`
}

const attachmentsPath = "/api/v1/agent/attachments"

// upload sends a file and returns the answer to it.
func (h *harness) upload(token, name, mimeType, content string) attachment {
	h.t.Helper()
	got := h.request(http.MethodPost, attachmentsPath, token, mimeType, content, "Content-Disposition", `attachment; filename="`+name+`"`)
	if got.status != http.StatusOK {
		h.t.Fatalf("%s: %d %s", name, got.status, got.body)
	}
	return decode[attachment](h.t, got.body)
}

// form returns a form with a file, and its content type.
func form(t *testing.T, name, mimeType, content string) (contentType, body string) {
	t.Helper()
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	err := w.WriteField("note", "beside the file")
	part, _ := w.CreatePart(textproto.MIMEHeader{
		"Content-Disposition": {`form-data; name="file"; filename="` + name + `"`}, "Content-Type": {mimeType},
	})
	if _, more := io.WriteString(part, content); err != nil || more != nil || w.Close() != nil {
		t.Fatal(err, more)
	}
	return w.FormDataContentType(), b.String()
}

// TestUpload sends files in both forms and reads them under their links.
func TestUpload(t *testing.T) {
	t.Parallel()
	everyStore(t, func(t *testing.T, h *harness) {
		page := "<html><script>alert(1)</script>"
		formType, formBody := form(t, "cat.png", "image/png", catPNG)
		for name, c := range map[string]struct{ contentType, body, file, mimeType, disposition string }{
			"an image":                 {"image/png", catPNG, catPNG, "image/png", `inline; filename=cat.png`},
			"a form":                   {formType, formBody, catPNG, "image/png", `inline; filename=cat.png`},
			"an unannounced image":     {"application/octet-stream", catPNG, catPNG, "image/png", `inline; filename=cat.png`},
			"a page":                   {"text/html; charset=utf-8", page, page, "text/html", `attachment; filename=cat.png`},
			"an image that is a page":  {"image/svg+xml", "<svg onload='alert(1)'/>", "<svg onload='alert(1)'/>", "image/svg+xml", `attachment; filename=cat.png`},
			"a file of the whole size": {"text/plain", strings.Repeat("x", 2000), strings.Repeat("x", 2000), "text/plain", `attachment; filename=cat.png`},
		} {
			got := h.request(http.MethodPost, attachmentsPath, ownToken, c.contentType, c.body, "Content-Disposition", `attachment; filename="../cat.png"`)
			made := decode[attachment](t, got.body)
			link, token, found := strings.Cut(made.URL, "?token=")
			if got.status != http.StatusOK || link != h.url+"/storage/v1/object/sign/"+made.Bucket+"/"+made.Path || !found || strings.Count(token, ".") != 2 {
				t.Fatalf("%s: %d %s", name, got.status, got.body)
			}
			read := h.request(http.MethodGet, made.URL, "", "", "")
			same(t, []string{read.body, made.MimeType, read.header.Get("Content-Type"), read.header.Get("Content-Disposition"), read.header.Get("X-Content-Type-Options")},
				[]string{c.file, c.mimeType, c.mimeType, c.disposition, "nosniff"})
			if !strings.Contains(read.header.Get("Content-Security-Policy"), "sandbox") {
				t.Errorf("%s: a page can run its scripts: %v", name, read.header)
			}
		}
	})
}

// TestLinkAnswersRangesAndETags reads a part of a file, and one that the client has already.
func TestLinkAnswersRangesAndETags(t *testing.T) {
	t.Parallel()
	everyStore(t, func(t *testing.T, h *harness) {
		made := h.upload(ownToken, "a.txt", "text/plain", "0123456789")
		whole := h.request(http.MethodGet, made.URL, "", "", "")
		tag := whole.header.Get("ETag")
		part := h.request(http.MethodGet, made.URL, "", "", "", "Range", "bytes=2-4", "If-Range", tag)
		if part.status != http.StatusPartialContent || part.body != "234" || part.header.Get("Content-Range") != "bytes 2-4/10" {
			t.Errorf("%d %q %v", part.status, part.body, part.header)
		}
		known := h.request(http.MethodGet, made.URL, "", "", "", "If-None-Match", tag)
		beyond := h.request(http.MethodGet, made.URL, "", "", "", "Range", "bytes=10-")
		head := h.request(http.MethodHead, made.URL, "", "", "")
		same(t, []int{known.status, beyond.status, head.status}, []int{http.StatusNotModified, http.StatusRequestedRangeNotSatisfiable, http.StatusOK})
		if tag == "" || head.header.Get("Content-Length") != "10" || head.body != "" {
			t.Errorf("the tag is %q, the head's length %s", tag, head.header.Get("Content-Length"))
		}
	})
}

// TestUploadRefused sends files that are not stored.
func TestUploadRefused(t *testing.T) {
	t.Parallel()
	everyStore(t, func(t *testing.T, h *harness) {
		tooLong := strings.Repeat("x", 2001)
		longType, longForm := form(t, "a.txt", "text/plain", tooLong)
		noFile, noFileForm := form(t, "", "text/plain", "x")
		for name, c := range map[string]struct {
			token, contentType, body string
			status                   int
		}{
			"too long":                   {ownToken, "text/plain", tooLong, 413},
			"too long in a form":         {ownToken, longType, longForm, 413},
			"much too long":              {ownToken, "text/plain", strings.Repeat(tooLong, 100), 413},
			"text instead of an image":   {ownToken, "image/png", "hello", 400},
			"another kind of image":      {ownToken, "image/jpeg", catPNG, 400},
			"a page instead of a file":   {ownToken, "application/pdf", "<html>sign in</html>", 400},
			"nothing":                    {ownToken, "text/plain", "", 400},
			"a form without a file":      {ownToken, noFile, noFileForm, 400},
			"a form without parts":       {ownToken, "multipart/form-data; boundary=x", "--x--\r\n", 400},
			"a form that ends too early": {ownToken, "multipart/form-data; boundary=x", "--x\r\nContent-Disposition: form-data; name=a; filename=b\r\n\r\nabc", 400},
			"no token":                   {"", "image/png", catPNG, 401},
			"a wrong token":              {"wrong", "image/png", catPNG, 401},
		} {
			if got := h.request(http.MethodPost, attachmentsPath, c.token, c.contentType, c.body); got.status != c.status || !strings.Contains(got.body, `"error":{"code"`) {
				t.Errorf("%s: %d %s", name, got.status, got.body)
			}
		}
	})
}

// TestUploadInBrokenChunks sends a file in chunks that are malformed or end too early.
func TestUploadInBrokenChunks(t *testing.T) {
	t.Parallel()
	everyStore(t, func(t *testing.T, h *harness) {
		for _, chunks := range []string{"zz\r\nabc\r\n", "3\r\nabcdef\r\n0\r\n\r\n"} {
			conn, err := net.Dial("tcp", strings.TrimPrefix(h.url, "http://"))
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: parley\r\nAuthorization: Bearer %s\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n%s", attachmentsPath, ownToken, chunks)
			response, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil || response.StatusCode != http.StatusBadRequest {
				t.Errorf("%q: %v, %v", chunks, response, err)
			}
			conn.Close()
		}
	})
}

// TestLinkIsSafe asks for files with links that were changed.
func TestLinkIsSafe(t *testing.T) {
	t.Parallel()
	everyStore(t, func(t *testing.T, h *harness) {
		made, other := h.upload(ownToken, "a.txt", "text/plain", "mine"), h.upload(ownToken, "b.txt", "text/plain", "another")
		link, token, _ := strings.Cut(made.URL, "?token=")
		_, otherToken, _ := strings.Cut(other.URL, "?token=")
		head, rest, _ := strings.Cut(token, ".")
		claims, signature, _ := strings.Cut(rest, ".")
		last := signature[len(signature)-1]
		near := signature[:len(signature)-1] + string(map[bool]byte{true: 'B', false: 'A'}[last == 'A'])
		base := h.url + "/storage/v1/object/sign/"
		for name, address := range map[string]string{
			"another signature":       link + "?token=" + head + "." + claims + "." + strings.ToUpper(signature),
			"its last digit":          link + "?token=" + head + "." + claims + "." + near,
			"no signature":            link + "?token=" + head + "." + claims + ".",
			"no algorithm":            link + "?token=eyJhbGciOiJub25lIiwidHlwIjoiSldUIn0." + claims + ".",
			"other claims":            link + "?token=" + head + "." + claims[:len(claims)-4] + "fQ." + signature,
			"another file's token":    link + "?token=" + otherToken,
			"no token":                link,
			"an empty token":          link + "?token=",
			"another path":            base + made.Bucket + "/" + other.Path + "?token=" + token,
			"another bucket":          base + "else/" + made.Path + "?token=" + token,
			"up":                      base + made.Bucket + "/../../../../etc/passwd?token=" + token,
			"up, encoded":             base + made.Bucket + "/%2e%2e/%2e%2e/" + made.Path + "?token=" + token,
			"up, behind the path":     link + "/../" + made.Path + "?token=" + token[:9],
			"two slashes":             base + made.Bucket + "//" + made.Path + "?token=" + token[:9],
			"an encoded slash":        base + made.Bucket + "%2F" + made.Path + "?token=" + token,
			"a slash in the path":     base + made.Bucket + "/" + strings.Replace(made.Path, "/", "%2F", 1) + "x?token=" + token,
			"a null byte":             link + "%00?token=" + token,
			"a folder":                base + made.Bucket + "/?token=" + token,
			"a backslash":             base + made.Bucket + `/..%5c..%5c` + made.Path + "?token=" + token,
			"a second token at first": link + "?token=x&token=" + token,
		} {
			got := h.request(http.MethodGet, address, "", "", "")
			if got.status != 401 && got.status != 404 && got.status != 429 || strings.Contains(got.body, "mine") {
				t.Errorf("%s: %d %s", name, got.status, got.body)
			}
		}
		if got := h.request(http.MethodGet, made.URL, "", "", ""); got.status != http.StatusOK || got.body != "mine" {
			t.Errorf("the link after all that: %d %s", got.status, got.body)
		}
		h.clock.advance(59 * time.Minute)
		if got := h.request(http.MethodGet, made.URL, "", "", ""); got.status != http.StatusOK {
			t.Errorf("with a minute left: %d", got.status)
		}
		h.clock.advance(time.Minute)
		if got := h.request(http.MethodGet, made.URL, "", "", ""); got.status != http.StatusForbidden || !strings.Contains(got.body, "expired") {
			t.Errorf("after its end: %d %s", got.status, got.body)
		}
	})
}

// TestLinkOutlivesARestart reads a file under a link that another process has signed.
func TestLinkOutlivesARestart(t *testing.T) {
	t.Parallel()
	everyStore(t, func(t *testing.T, h *harness) {
		made := h.upload(ownToken, "cat.png", "image/png", catPNG)
		h.restart()
		u, err := url.Parse(made.URL)
		if err != nil {
			t.Fatal(err)
		}
		if got := h.get(u.RequestURI()); got.status != http.StatusOK || got.body != catPNG {
			t.Errorf("%d %s", got.status, got.body)
		}
	})
}

// TestBucketServesItsFiles follows a link to a file in a bucket.
func TestBucketServesItsFiles(t *testing.T) {
	t.Parallel()
	bucket := s3test.Start()
	t.Cleanup(bucket.Close)
	h := open(t, documentsPlan("sqlite:data/parley.db", fmt.Sprintf(`, s3: {endpoint: "%s", bucket: %s, region: %s, access_key: %s, secret_key: %s, prefix: our/files}`,
		bucket.URL, s3test.Bucket, s3test.Region, s3test.AccessKey, s3Secret)))
	made := h.upload(ownToken, "cat.png", "image/png", catPNG)
	if made.Bucket != "s3:"+s3test.Bucket || !strings.HasPrefix(made.Path, "our/files/") || !strings.HasPrefix(made.URL, h.url+"/storage/v1/object/sign/s3:"+s3test.Bucket+"/our/files/") {
		t.Errorf("%+v", made)
	}
	h.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	direct := h.request(http.MethodGet, made.URL, "", "", "").header.Get("Location")
	if !strings.HasPrefix(direct, bucket.URL+"/") || !strings.Contains(direct, "X-Amz-Signature=") || strings.Contains(direct, s3Secret) {
		t.Errorf("the link leads to %s", direct)
	}
	read := h.request(http.MethodGet, direct, "", "", "")
	same(t, []string{read.body, read.header.Get("Content-Type"), read.header.Get("Content-Disposition")}, []string{catPNG, "image/png", "inline; filename=cat.png"})
}

// TestUnnamedFileIsRemoved sends files that no message names. They are removed after a day.
func TestUnnamedFileIsRemoved(t *testing.T) {
	t.Parallel()
	h := open(t, documentsPlan("sqlite:data/parley.db", ", ttl: 48h"))
	made := h.upload(ownToken, "cat.png", "image/png", catPNG)
	for _, step := range []struct {
		after time.Duration
		want  int
	}{{47 * time.Hour, http.StatusOK}, {30 * time.Minute, http.StatusOK}, {31 * time.Minute, 0}} {
		h.restart(func() { h.clock.advance(step.after) }) // a start removes what is due
		made.URL = h.url + made.URL[strings.Index(made.URL, "/storage/"):]
		got := h.request(http.MethodGet, made.URL, "", "", "").status
		if step.want != 0 && got != step.want {
			t.Errorf("after %s: %d", step.after, got)
		}
	}
	for {
		if left, err := filepath.Glob(filepath.Join(h.dir, "files/*/*")); err != nil || len(left) == 0 {
			break
		} else if !h.poll() {
			t.Fatalf("left %q", left)
		}
	}
}

// TestAMessageNamesAFileByItsLink sends a message with the link of a file. The message has the
// file's place and never a link, and each reader gets a new link.
func TestAMessageNamesAFileByItsLink(t *testing.T) {
	t.Parallel()
	everyStore(t, func(t *testing.T, h *harness) {
		thread, made := h.newThread("open"), h.upload(ownToken, "cat.png", "image/png", catPNG)
		body := func(address string) string {
			return fmt.Sprintf(`{"content":"look","attachments":[{"name":"tom.png","url":%q}]}`, address)
		}
		for name, address := range map[string]string{
			"another origin":   strings.Replace(made.URL, h.url, "http://127.0.0.1:9", 1),
			"a changed path":   strings.Replace(made.URL, made.Path, made.Path+"0", 1),
			"without a token":  strings.SplitN(made.URL, "?", 2)[0],
			"another protocol": "file:///etc/passwd",
		} {
			if got := h.chat(http.StatusBadRequest, "POST", thread+"/messages", ownToken, body(address)); !strings.Contains(got, "attachments[0].url") {
				t.Errorf("%s: %s", name, got)
			}
		}
		h.chat(http.StatusBadRequest, "POST", thread+"/messages", ownToken, `{"content":"look","attachments":[{"name":"a","data":"aGk=","url":"x"}]}`)
		h.clock.advance(time.Minute)
		h.chat(http.StatusCreated, "POST", thread+"/messages", ownToken, body(made.URL))
		list := h.chat(http.StatusOK, "GET", thread+"/messages", ownToken, "")
		first := decode[struct {
			Messages []struct {
				Metadata    map[string]attachment
				Attachments []attachment
			}
		}](t, list).Messages[0]
		same(t, first.Metadata["user_message_attachments"], attachment{made.Bucket, made.Path, "", "image/png"})
		if len(first.Attachments) != 1 || first.Attachments[0].URL == made.URL || !strings.Contains(list, `"name":"tom.png"`) {
			t.Fatal(list)
		}
		read := h.request(http.MethodGet, first.Attachments[0].URL, "", "", "")
		same(t, read.body, catPNG)
	})
}
