package remote

import (
	"context"
	"io"
	"net/http"
	"sync"

	"parley/assembly/turn"
)

// proveBody makes the first read of a request's body call turn.Prove. The transport reads the
// body when it has a connection and has written the headers, which contain nothing of the input.
func proveBody(ctx context.Context, request *http.Request) {
	if request.Body == nil {
		return
	}
	request.Body = proved(ctx, request.Body)
	if again := request.GetBody; again != nil {
		request.GetBody = func() (io.ReadCloser, error) {
			body, err := again()
			return proved(ctx, body), err
		}
	}
}

func proved(ctx context.Context, body io.ReadCloser) io.ReadCloser {
	return &provedBody{body, sync.OnceValue(func() error { return turn.Prove(ctx) })}
}

// provedBody is a body that only a proof lets out.
type provedBody struct {
	io.ReadCloser
	prove func() error
}

func (b *provedBody) Read(p []byte) (int, error) {
	if err := b.prove(); err != nil {
		return 0, err
	}
	return b.ReadCloser.Read(p)
}
