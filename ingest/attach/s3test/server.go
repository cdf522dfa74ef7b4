// Package s3test is a fake S3 server with one bucket, on a loopback port, with faults on
// demand. It depends on no test framework.
//
// It checks a request like real servers: a signature of version 4 for the right key and
// region, and a body of the signed length and sum.
// https://docs.aws.amazon.com/AmazonS3/latest/API/sig-v4-header-based-auth.html
package s3test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/xml"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// The bucket's name and region, and the key that may use it.
const (
	Bucket    = "parley-test"
	Region    = "eu-test-1"
	AccessKey = "AKIATEST"
)

// lastModified is the time of every object, which clients require.
const lastModified = "Sun, 01 Mar 2026 12:00:00 GMT"

// Fault is a failure of one request.
type Fault struct {
	// Status is answered with Code and Message, without effect; 0 means that the request
	// succeeds.
	Status        int
	Code, Message string
	// Unread sends the answer before the request's body was read.
	Unread bool
	// Cut closes the connection: before an answer, or in the middle of an object.
	Cut bool
	// Short announces one byte less of an object than it has, and sends that.
	Short bool
}

// Server is a running fake. Its methods are safe for concurrent use.
type Server struct {
	*httptest.Server
	mu       sync.Mutex
	objects  map[string][]byte
	faults   map[string][]Fault // by method
	requests []string
}

// Start listens and serves until Close.
func Start() *Server {
	s := &Server{objects: map[string][]byte{}, faults: map[string][]Fault{}}
	s.Server = httptest.NewServer(s)
	return s
}

// Script sets the faults of the next requests of a method, one each.
func (s *Server) Script(method string, faults ...Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults[method] = append(s.faults[method], faults...)
}

// Keys returns the names of the objects, in order.
func (s *Server) Keys() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.objects))
}

// Set stores an object without a request.
func (s *Server) Set(key string, content []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.objects[key] = content
}

// Requests lists the requests so far, as "PUT ab/cd".
func (s *Server) Requests() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	key, ours := strings.CutPrefix(r.URL.Path, "/"+Bucket+"/")
	fault := s.begin(r.Method, key)
	if fault.Unread {
		refuse(w, fault.Status, fault.Code, fault.Message)
		return
	}
	body, err := io.ReadAll(r.Body)
	sum := sha256.Sum256(body)
	switch {
	case err != nil || fault.Cut && r.Method != http.MethodGet:
		panic(http.ErrAbortHandler) // closes the connection
	case fault.Status != 0:
		refuse(w, fault.Status, fault.Code, fault.Message)
	case !ours:
		refuse(w, http.StatusNotFound, "NoSuchBucket", "The specified bucket does not exist")
	case !signed(r, key == ""):
		refuse(w, http.StatusForbidden, "SignatureDoesNotMatch", "Authorization was "+r.Header.Get("Authorization"))
	case !presigned(r) && r.Header.Get("X-Amz-Content-Sha256") != hex.EncodeToString(sum[:]):
		refuse(w, http.StatusBadRequest, "XAmzContentSHA256Mismatch", "The provided sum does not match what was computed.")
	default:
		s.answer(w, r, key, body, fault)
	}
}

func (s *Server) begin(method, key string) (fault Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, method+" "+key)
	if waiting := s.faults[method]; len(waiting) > 0 && key != "" {
		fault, s.faults[method] = waiting[0], waiting[1:]
	}
	return fault
}

// signed reports whether a request is signed with our key for our region, or for any
// region, because a client that asks for the region does not know it yet.
func signed(r *http.Request, any bool) bool {
	scope, ours := strings.CutPrefix(r.Header.Get("Authorization"), "AWS4-HMAC-SHA256 Credential="+AccessKey+"/")
	whole := strings.Contains(scope, "x-amz-content-sha256")
	if presigned(r) {
		scope, ours = strings.CutPrefix(r.URL.Query().Get("X-Amz-Credential"), AccessKey+"/")
		whole = r.URL.Query().Get("X-Amz-Expires") != "" && r.Method == http.MethodGet
	}
	parts := strings.Split(scope, "/")
	return ours && len(parts) > 3 && (any || parts[1] == Region) && parts[2] == "s3" && whole
}

// presigned reports whether the address of a request carries its signature:
// https://docs.aws.amazon.com/AmazonS3/latest/API/sigv4-query-string-auth.html
func presigned(r *http.Request) bool { return r.URL.Query().Has("X-Amz-Signature") }

func (s *Server) answer(w http.ResponseWriter, r *http.Request, key string, body []byte, fault Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w.Header().Set("Last-Modified", lastModified)
	switch content, found := s.objects[key]; {
	case key == "" && r.Method == http.MethodGet && r.URL.Query().Has("location"):
		fmt.Fprintf(w, `<LocationConstraint xmlns="http://s3.amazonaws.com/doc/2006-03-01/">%s</LocationConstraint>`, Region)
	case r.Method == http.MethodPut:
		s.objects[key] = body
		w.Header().Set("ETag", `"1"`)
	case r.Method == http.MethodDelete:
		delete(s.objects, key)
		w.WriteHeader(http.StatusNoContent)
	case !found:
		refuse(w, http.StatusNotFound, "NoSuchKey", "The specified key does not exist.")
	case fault.Cut:
		w.Header().Set("Content-Length", strconv.Itoa(len(content)))
		_, _ = w.Write(content[:len(content)/2])
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	case fault.Short:
		w.Header().Set("Content-Length", strconv.Itoa(len(content)-1))
		_, _ = w.Write(content[:len(content)-1])
	default:
		for _, key := range []string{"Content-Type", "Content-Disposition"} {
			if value := r.URL.Query().Get("response-" + strings.ToLower(key)); value != "" {
				w.Header().Set(key, value)
			}
		}
		_, _ = w.Write(content)
	}
}

// refuse answers like S3:
// https://docs.aws.amazon.com/AmazonS3/latest/API/ErrorResponses.html.
func refuse(w http.ResponseWriter, status int, code, message string) {
	w.Header().Set("Content-Type", "application/xml")
	w.WriteHeader(status)
	_ = xml.NewEncoder(w).Encode(struct {
		XMLName       xml.Name `xml:"Error"`
		Code, Message string
	}{Code: code, Message: message})
}
