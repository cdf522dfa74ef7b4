package httpcall

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"
)

// Sign returns the signature of a request of ours: v1= and the hex HMAC-SHA256 of "v1:<timestamp>:<body>". Its error is that
// of the body.
func Sign(secret, timestamp string, body io.Reader) (string, error) {
	mac := hmac.New(sha256.New, []byte(secret))
	fmt.Fprintf(mac, "v1:%s:", timestamp)
	_, err := io.Copy(mac, body)
	return "v1=" + hex.EncodeToString(mac.Sum(nil)), err
}

// SetSignature signs a request whose body can be read again.
func SetSignature(request *http.Request, secret string, now time.Time) error {
	body, err := request.GetBody()
	if err != nil {
		return err
	}
	defer body.Close()
	stamp := strconv.FormatInt(now.Unix(), 10)
	signature, err := Sign(secret, stamp, body)
	if err != nil {
		return err
	}
	request.Header.Set("X-Parley-Timestamp", stamp)
	request.Header.Set("X-Parley-Signature", signature)
	return nil
}
