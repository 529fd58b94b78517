package request

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

func TestAListIsReadItemByItem(t *testing.T) {
	for list, want := range map[string]string{
		`{"kind":"List","metadata":{"continue":"c"},"items":[{"a":1}, {"b":[2]}]}`: `{"a":1} {"b":[2]} next c`,
		`{"items":[],"metadata":{}}`:                     `next `,
		`{"items":null}`:                                 `next `,
		`{"items":[{"a":1}`:                              `{"a":1} EOF`,
		`{"items":[{"a":1}],"metadata":{"continue":"c"}`: `{"a":1} EOF`,
		`{"items":[{"stop":1},{"a":1}]}`:                 `{"stop":1} enough`,
		`[]`:                                             `next `,
		``:                                               `EOF`,
	} {
		got := ""
		next, err := eachItem(strings.NewReader(list), func(raw json.RawMessage) error {
			got += string(raw) + " "
			if strings.Contains(string(raw), "stop") {
				return errors.New("enough")
			}
			return nil
		})
		if err != nil {
			got += strings.TrimPrefix(err.Error(), "unexpected ")
		} else {
			got += "next " + next
		}
		if got != want {
			t.Errorf("%s: %q, want %q", list, got, want)
		}
	}
}
