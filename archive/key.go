package archive

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"errors"
	"fmt"
)

// keySize is the size of an AES-256 key, in bytes.
const keySize = 32

// Key seals the chunks of one tree, or wraps the keys of trees.
type Key struct{ aead cipher.AEAD }

// NewKey returns a key of bytes from NewKeyBytes.
func NewKey(b []byte) (Key, error) {
	if len(b) != keySize {
		return Key{}, fmt.Errorf("a key has %d bytes, not %d", len(b), keySize)
	}
	block, err := aes.NewCipher(b)
	if err != nil {
		return Key{}, err
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	return Key{aead}, err
}

// NewKeyBytes returns the bytes of a new key.
func NewKeyBytes() []byte {
	b := make([]byte, keySize)
	_, _ = rand.Read(b) // never fails
	return b
}

// NewTreeKey returns a new key for a tree, and the same wrapped.
func (k Key) NewTreeKey(tree string) (key Key, wrapped []byte, err error) {
	b := NewKeyBytes()
	key, err = NewKey(b)
	return key, k.aead.Seal(nil, nil, b, []byte(tree)), err
}

// TreeKey unwraps the key of a tree.
func (k Key) TreeKey(tree string, wrapped []byte) (Key, error) {
	b, err := k.aead.Open(nil, nil, wrapped, []byte(tree))
	if err != nil {
		return Key{}, errors.New("the archive's key does not unwrap the key of the tree: " +
			"it was wrapped by another, or altered")
	}
	return NewKey(b)
}
