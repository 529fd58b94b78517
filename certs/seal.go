package certs

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
)

// Seal is by what those who know the token know that one of them wrote a text: an HMAC-SHA256 with
// the token. False while the token is not known. A seal is good for as long as its token is taken:
// after that, whoever sealed it has to seal it again.
func (t *Token) Seal(text string) (seal string, ok bool) {
	now, _ := t.keys()
	if now == "" {
		return "", false
	}
	return hex.EncodeToString(sealOf(now, text)), true
}

// Sealed tells whether a text was sealed by a process that knows the token, or the one before it.
func (t *Token) Sealed(text, seal string) bool {
	now, before := t.keys()
	said, err := hex.DecodeString(seal)
	if err != nil {
		return false
	}
	is := func(token string) bool { return token != "" && hmac.Equal(said, sealOf(token, text)) }
	return is(now) || is(before)
}

func (t *Token) keys() (now, before string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.have.now, t.have.before
}

// sealOf says what the token is used for here, so that a seal is good for nothing else.
func sealOf(token, text string) []byte {
	m := hmac.New(sha256.New, []byte("weir seal\n"+token))
	m.Write([]byte(text)) // never fails
	return m.Sum(nil)
}
