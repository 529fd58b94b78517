package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/secure-systems-lab/go-securesystemslib/dsse"
	"github.com/secure-systems-lab/go-securesystemslib/signerverifier"
)

// keyed reads a key, private or public.
func keyed(path string) (*signerverifier.ED25519SignerVerifier, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	key, err := signerverifier.LoadKey(data)
	if err != nil {
		return nil, fmt.Errorf("read the key in %s: %w", path, err)
	}
	if key.KeyType != signerverifier.ED25519KeyType {
		return nil, fmt.Errorf("read the key in %s: it is of type %s, and must be of type Ed25519", path, key.KeyType)
	}
	return signerverifier.NewED25519SignerVerifierFromSSLibKey(key)
}

// sign writes the statement with a signature, which is not among the sums: who makes the same
// release again has another key, or none.
func (r *release) sign(ctx context.Context, statement []byte) error {
	if r.key == "" {
		fmt.Fprintln(os.Stderr, "release make: not signed: there is no --key")
		return nil
	}
	key, err := keyed(r.key)
	if err != nil {
		return err
	}
	signer, err := dsse.NewEnvelopeSigner(key)
	if err != nil {
		return err
	}
	envelope, err := signer.SignPayload(ctx, provenanceType, statement)
	if err != nil {
		return fmt.Errorf("sign the provenance: %w", err)
	}
	data, err := json.Marshal(envelope)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(r.dir, r.named("intoto.dsse.json")), data, 0o644)
}

// verifySignature checks that an envelope is signed with a key, and has this statement in it.
func verifySignature(ctx context.Context, envelope, statement []byte, keyPath string) error {
	key, err := keyed(keyPath)
	if err != nil {
		return err
	}
	verifier, err := dsse.NewEnvelopeVerifier(key)
	if err != nil {
		return err
	}
	var e dsse.Envelope
	if err := json.Unmarshal(envelope, &e); err != nil {
		return fmt.Errorf("read the signature: %w", err)
	}
	_, payload, err := verifier.VerifyAndDecode(ctx, &e)
	if err != nil {
		return fmt.Errorf("verify the signature: %w", err)
	}
	if e.PayloadType != provenanceType || string(payload) != string(statement) {
		return errors.New("what is signed is not the provenance of this release")
	}
	return nil
}
