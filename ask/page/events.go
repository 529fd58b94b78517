package page

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"
)

const (
	// pause is the least time between two events: many changes are one event. The first change after a
	// quiet time waits for gather only, for those that come with it.
	pause  = 200 * time.Millisecond
	gather = 20 * time.Millisecond
	// beat is the most time between two events, and is sent with each: a page that receives nothing
	// for longer shows that it is not connected.
	beat = 5 * time.Second
	// sendTime bounds the sending of one event.
	sendTime = 10 * time.Second
)

// events sends an open page the version of the Follower at each change.
func (p *Page) events(w http.ResponseWriter, r *http.Request) {
	select {
	case p.streams <- struct{}{}:
		defer func() { <-p.streams }()
	default:
		http.Error(w, fmt.Sprintf("%d pages are open: close some", mostStreams), http.StatusTooManyRequests)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	out := http.NewResponseController(w)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		version, further := p.Follower.Changed()
		health := p.Follower.Health()
		data, err := json.Marshal(map[string]any{"version": version, "health": health, "beat": beat.Milliseconds()})
		if err != nil {
			return
		}
		_ = out.SetWriteDeadline(time.Now().Add(sendTime))
		if _, err := fmt.Fprintf(w, "data: %s\n\n", data); err != nil || out.Flush() != nil {
			return
		}
		sent := time.Now()
		timer.Reset(beat)
		select {
		case <-r.Context().Done():
			return
		case <-timer.C:
		case <-further:
			timer.Reset(max(gather, pause-time.Since(sent)))
			select {
			case <-r.Context().Done():
				return
			case <-timer.C:
			}
		}
	}
}
