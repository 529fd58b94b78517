package certs

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
)

// Seal is by what those who know the key know that one of them wrote a text: an HMAC-SHA256. The
// key is in the Secret of the token and, unlike the token, nowhere else. False while it is not
// known.
func (t *Token) Seal(text string) (seal string, ok bool) {
	t.mu.Lock()
	key := t.have.seal
	t.mu.Unlock()
	if key == "" {
		return "", false
	}
	m := hmac.New(sha256.New, []byte("weir seal\n"+key))
	m.Write([]byte(text)) // never fails
	return hex.EncodeToString(m.Sum(nil)), true
}

// Sealed tells whether a text was sealed by a process that knows the key.
func (t *Token) Sealed(text, seal string) bool {
	want, ok := t.Seal(text)
	return ok && hmac.Equal([]byte(seal), []byte(want))
}
