package webhook

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sync/semaphore"
	admissionv1 "k8s.io/api/admission/v1"

	"github.com/weir-dev/weir/policies"
)

// listening is a server of the handler, with this intake.
func listening(t *testing.T, in *intake, judge reviewer) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(router(func(policies.Webhook) reviewer {
		return judge
	}, takes, func() error { return nil }, in, testMetrics(t), newSayer(logr.Discard())))
	t.Cleanup(s.Close)
	return s
}

// refusing says of all policies that they refuse something.
func refusing(policies.Part) bool { return true }

// begin sends the beginning of a review whose body has so many bytes, and as much of it as is
// taken.
func begin(t *testing.T, s *httptest.Server, token string, size int, body []byte) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.URL, "http://")) //nolint:noctx // it is local
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() }) // it may be closed already
	if err := conn.(*net.TCPConn).SetWriteBuffer(64 << 10); err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Fprintf(conn,
		"POST /%s/delete HTTP/1.1\r\nHost: weir\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n",
		token, size); err != nil {
		t.Fatal(err)
	}
	go func() { _, _ = conn.Write(body) }() // until none takes any more
	return conn
}

func heap() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// 150 clients send 20 MiB less a byte, and hang: 3 GB, if it were all held. They hang for as long
// as the test takes, so that a review that waited for one of them would not be answered at all.
func TestBodiesThatHangHoldLittleAndNoReviewUp(t *testing.T) {
	in := newIntake(refusing)
	in.bodyTime, in.free = time.Hour, semaphore.NewWeighted(keptForSmall+4*mostBody)
	s := listening(t, in, yes)
	client := &http.Client{Timeout: time.Minute}
	body := bytes.Repeat([]byte("["), mostBody-1)
	before := heap()
	conns := make([]net.Conn, 150)
	for i := range conns {
		conns[i] = begin(t, s, testToken, mostBody, body)
	}
	for i := range 20 {
		resp, err := client.Post(s.URL+"/"+testToken+"/delete", aJSON, strings.NewReader(request(aDelete))) //nolint:noctx // it is local
		if err != nil {
			t.Fatalf("review %d beside them: %v", i, err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != 200 {
			t.Errorf("review %d beside them: %d", i, resp.StatusCode)
		}
	}
	if held := heap() - before; held > 150<<20 {
		t.Errorf("%d MiB are held", held>>20)
	}
	codes := map[int]int{}
	for _, c := range conns {
		_ = c.(*net.TCPConn).CloseWrite() // it may be closed already
		resp, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			codes[0]++ // the connection was closed under what it still sent
			continue
		}
		_ = resp.Body.Close()
		codes[resp.StatusCode]++
	}
	if codes[400]+codes[413] < 4 || codes[400]+codes[413]+codes[429]+codes[0] != len(conns) {
		t.Errorf("they were answered %v", codes)
	}
	if !in.free.TryAcquire(keptForSmall + 4*mostBody) {
		t.Error("what they held is not free")
	}
}

func TestBodyThatDoesNotComeIsGivenUp(t *testing.T) {
	in := newIntake(refusing)
	in.bodyTime = 20 * time.Millisecond
	s := listening(t, in, yes)
	resp, err := http.ReadResponse(bufio.NewReader(begin(t, s, testToken, 1000, []byte("{"))), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != 400 || !strings.Contains(string(text), "read the review: ") ||
		!strings.Contains(string(text), "timeout") {
		t.Errorf("%d %s, %v", resp.StatusCode, text, err)
	}
}

// Who is not known is not waited for either, and takes no room.
func TestStrangerWhoHangsIsHungUpOn(t *testing.T) {
	in := newIntake(refusing)
	in.free = semaphore.NewWeighted(0)
	s := listening(t, in, yes)
	conn := begin(t, s, "guessed", 1000, []byte("{"))
	from := bufio.NewReader(conn)
	resp, err := http.ReadResponse(from, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil || resp.StatusCode != 404 {
		t.Errorf("%d, %v", resp.StatusCode, err)
	}
	if _, err := from.ReadByte(); err == nil {
		t.Error("the connection goes on")
	}
}

// The time of a body is over when it has come: to judge it may take longer, and so may the next.
func TestTimeOfABodyEndsWithIt(t *testing.T) {
	in := newIntake(refusing)
	in.bodyTime = time.Second
	gone := make(chan bool, 2)
	s := listening(t, in, func(r *http.Request, q policies.Question) answer {
		select {
		case <-r.Context().Done():
			gone <- true
		case <-time.After(5 * in.bodyTime / 4):
			gone <- false
		}
		return yes(r, q)
	})
	for range 2 { // on one connection
		resp, err := http.Post(s.URL+"/"+testToken+"/delete", aJSON, strings.NewReader(request(aDelete))) //nolint:noctx // it is local
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, resp.Body); err != nil {
			t.Error(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != 200 || <-gone {
			t.Errorf("%d: the client was given up though it waited", resp.StatusCode)
		}
	}
}

// Users can bring it about that too much is under way: where something might refuse what they ask
// for, it is refused.
func TestReviewsPastWhatIsTaken(t *testing.T) {
	in := newIntake(refusing)
	in.roomTime = 0 // nobody waits, and where there is room nobody has to
	m := testMetrics(t)
	h := router(func(policies.Webhook) reviewer {
		return yes
	}, takes, func() error { return nil }, in, m, newSayer(logr.Discard()))
	small, large := request(aDelete), request(aDelete+`,"weather":"`+strings.Repeat("x", smallReview)+`"`)
	send := func(body string, sized bool) int32 {
		var from io.Reader = strings.NewReader(body)
		if !sized {
			from = io.MultiReader(from)
		}
		return codeOf(t, post(h, "/delete", aJSON, from))
	}
	want := func(what string, smallCode, largeCode, unsizedCode int32) {
		t.Helper()
		if a, b, c := send(small, true), send(large, true), send(small, false); a != smallCode || b != largeCode ||
			c != unsizedCode {
			t.Errorf("%s: a small one %d, a large one %d, one of any size %d; want %d, %d, %d",
				what, a, b, c, smallCode, largeCode, unsizedCode)
		}
	}
	want("with room for all", 200, 200, 200)
	in.free.TryAcquire(mostRoom - keptForSmall - smallReview)
	want("with little room for large ones", 200, 429, 429)
	in.free.Release(mostRoom - keptForSmall - smallReview)
	in.free.TryAcquire(mostRoom - keptForSmall - 2*smallReview)
	want("with room for the text of large ones", 200, 429, 429)
	in.free.Release(mostRoom - keptForSmall - 2*smallReview)
	in.free.TryAcquire(mostRoom)
	want("with no room", 429, 429, 429)
	in.free.Release(mostRoom)
	want("when they are over", 200, 200, 200)
	if n := counted(t, m.requests)[" busy "] + counted(t, m.requests)["  busy"] + counted(t,
		m.requests)["busy  "]; n != 7 {
		t.Errorf("counted %v, want 7 busy", counted(t, m.requests))
	}
}

// A worker of another collector that is told when to come again waits until then, and collects
// nothing.
func TestCollectorsAreNotToldToWait(t *testing.T) {
	for path, waits := range map[string]bool{"/guard": false, "/delete": true} {
		in := newIntake(refusing)
		in.free.TryAcquire(mostRoom)
		in.roomTime = time.Millisecond
		h := router(func(policies.Webhook) reviewer {
			return yes
		}, takes, func() error { return nil }, in, testMetrics(t), newSayer(logr.Discard()))
		var review admissionv1.AdmissionReview
		if w := post(h, path, aJSON, strings.NewReader(request(aDelete))); json.Unmarshal(w.Body.Bytes(), &review) != nil ||
			review.Response == nil || review.Response.Result.Code != 429 {
			t.Fatalf("%s: %d %s", path, w.Code, w.Body)
		}
		if told := review.Response.Result.Details != nil; told != waits {
			t.Errorf("%s: told when to come again: %t", path, told)
		}
	}
}

// codeOf is how a review was answered: 200 lets the request pass, and another code refuses it, to
// be tried again.
func codeOf(t *testing.T, w *httptest.ResponseRecorder) int32 {
	t.Helper()
	if w.Code != 200 {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	var review admissionv1.AdmissionReview
	if err := json.Unmarshal(w.Body.Bytes(), &review); err != nil || review.Response == nil || review.Response.UID != "u" {
		t.Fatalf("%s, %v", w.Body, err)
	}
	if a := review.Response; !a.Allowed {
		if a.Result.Code == 429 && (a.Result.Details == nil || a.Result.Details.RetryAfterSeconds != 1) {
			t.Errorf("does not say when to come again: %s", w.Body)
		}
		return a.Result.Code
	}
	return 200
}

// Where nothing would be refused, nothing is for that: an error is what the failurePolicy, Ignore,
// lets through.
func TestReviewsPastWhatIsTakenAreAnErrorWhereNothingIsRefused(t *testing.T) {
	for name, c := range map[string]struct {
		path    string
		body    string
		refuses bool
		refused bool
	}{
		"a delete":                    {"/delete", request(aDelete), true, true},
		"an edit of owner references": {"/owners", request(aDelete), true, true},
		"policies on trial":           {"/delete", request(aDelete), false, false},
		"the finalizer":               {"/stamp", request(aDelete), true, false},
		"the canary":                  {"/canary", request(aDelete), true, false},
		"no uid in the beginning":     {"/delete", strings.Repeat(" ", beginning) + request(aDelete), true, false},
		"no review":                   {"/delete", "{", true, false},
	} {
		in := newIntake(func(policies.Part) bool { return c.refuses })
		in.free.TryAcquire(mostRoom)
		in.roomTime = time.Millisecond
		h := router(func(policies.Webhook) reviewer {
			return yes
		}, takes, func() error { return nil }, in, testMetrics(t), newSayer(logr.Discard()))
		w := post(h, c.path, aJSON, strings.NewReader(c.body))
		if c.refused && codeOf(t, w) != 429 || !c.refused && w.Code != 429 || w.Header().Get("Retry-After") != "1" {
			t.Errorf("%s: %d %s", name, w.Code, w.Body)
		}
	}
}

// Room that is about to be there is waited for.
func TestReviewWaitsForRoom(t *testing.T) {
	in := newIntake(refusing)
	in.roomTime = time.Minute
	in.free.TryAcquire(mostRoom)
	h := router(func(policies.Webhook) reviewer {
		return yes
	}, takes, func() error { return nil }, in, testMetrics(t), newSayer(logr.Discard()))
	var code int
	var wg sync.WaitGroup
	wg.Go(func() { code = post(h, "/delete", aJSON, strings.NewReader(request(aDelete))).Code })
	in.free.Release(mostRoom)
	wg.Wait()
	if code != 200 {
		t.Errorf("%d", code)
	}
}
