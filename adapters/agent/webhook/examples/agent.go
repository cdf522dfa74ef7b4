// Examples is an agent behind a webhook: WEBHOOK_SECRET=… PORT=8000 go run agent.go
package main

import (
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"strconv"
	"time"
)

func answer(w http.ResponseWriter, r *http.Request) {
	stamp := r.Header.Get("X-Parley-Timestamp")
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 16<<20))
	mac := hmac.New(sha256.New, []byte(os.Getenv("WEBHOOK_SECRET")))
	fmt.Fprintf(mac, "v1:%s:%s", stamp, body)
	signature := "v1=" + hex.EncodeToString(mac.Sum(nil))
	seconds, _ := strconv.ParseInt(stamp, 10, 64)
	age := time.Since(time.Unix(seconds, 0)).Abs()
	if err != nil || !hmac.Equal([]byte(signature), []byte(r.Header.Get("X-Parley-Signature"))) || age > 5*time.Minute {
		http.Error(w, "unauthorized", http.StatusUnauthorized)
		return
	}
	var run struct{ Message struct{ Content string } }
	if err := json.Unmarshal(body, &run); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]string{"content": "You said: " + run.Message.Content})
}

func main() {
	listener, err := net.Listen("tcp", "127.0.0.1:"+cmp.Or(os.Getenv("PORT"), "8000"))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("http://" + listener.Addr().String())
	log.Fatal(http.Serve(listener, http.HandlerFunc(answer)))
}
