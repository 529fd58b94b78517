package page

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"
)

const (
	// pause is between two events at least: many changes are one. After a time without any the
	// first is told once it has had gather for what comes with it.
	pause  = 200 * time.Millisecond
	gather = 20 * time.Millisecond
	// beat is between two at most, and told with each: a page that hears nothing for longer says
	// that it is not connected.
	beat = 5 * time.Second
	// sendTime is what sending one may take.
	sendTime = 10 * time.Second
)

// events tells a page, as long as it is open, how far the Follower is.
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
