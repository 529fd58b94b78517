package certs

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
)

// Seal returns an HMAC-SHA256 of a text, by which processes that have the key know that one of them
// wrote it. The key is in the Secret of the token and, unlike the token, nowhere else. It returns
// false while the key is not known.
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

// Sealed reports whether a process that has the key sealed a text.
func (t *Token) Sealed(text, seal string) bool {
	want, ok := t.Seal(text)
	return ok && hmac.Equal([]byte(seal), []byte(want))
}
