package webhook

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"github.com/weir-dev/weir/policies"
)

func listOf(item string, n int) string {
	return "[" + strings.TrimSuffix(strings.Repeat(item+",", n), ",") + "]"
}

func fieldsOf(n int) string {
	fields := make([]string, n)
	for i := range fields {
		fields[i] = fmt.Sprintf(`"%d":0`, i)
	}
	return "{" + strings.Join(fields, ",") + "}"
}

// forms are what takes much memory for its size.
var forms = map[string]string{
	"empty objects": listOf("{}", 10_000), "empty lists": listOf("[]", 10_000), "nulls": listOf("null", 10_000),
	"digits": listOf("0", 10_000), "numbers": listOf("1000", 10_000), "fractions": listOf("1.5", 10_000),
	"strings": listOf(`"a"`, 10_000), "empty strings": listOf(`""`, 10_000), "lists of one": listOf("[0]", 10_000),
	"lists of five":  listOf("[0,0,0,0,0]", 2_000),
	"objects of one": listOf(`{"":0}`, 10_000), "objects of eight": listOf(fieldsOf(8), 1_000),
	"objects of nine":    listOf(fieldsOf(9), 1_000),
	"objects of fifteen": listOf(fieldsOf(15), 1_000), "objects of a hundred": listOf(fieldsOf(100), 100),
	"one object":         fieldsOf(10_000),
	"objects in objects": listOf(`{"a":{"b":{"c":0}}}`, 4_000),
}

// What is set aside for a review is what it takes: of metadata, which is decoded twice where a
// condition looks at all of an object, and of anything else.
func TestDecodedReviewsTakeWhatIsSetAside(t *testing.T) {
	for name, form := range forms {
		for _, object := range []string{`{"metadata":{"name":"web","labels":` + form + `}}`,
			`{"metadata":{"name":"web"},"spec":` + form + `}`} {
			body := []byte(request(strings.Replace(aDelete, `{"metadata":{"name":"web"}}`, object, 1)))
			before := heap()
			review, err := understand(body)
			if err != nil {
				t.Fatal(err)
			}
			q, err := policies.FromRequest(review.Request)
			if err != nil {
				t.Fatal(err)
			}
			var all map[string]any
			if err := utiljson.Unmarshal(review.Request.OldObject.Raw, &all); err != nil {
				t.Fatal(err)
			}
			took := int64(heap()) - int64(before)
			size := decodedSize(body)
			if took > size {
				t.Errorf("%s: %d bytes take %d, and %d are set aside", name, len(body), took, size)
			}
			if least := int64(len(body)) * mostGrowth; size+int64(len(body)) > least {
				t.Errorf("%s: %d bytes take %d and their text, and %d are set aside for a small one", name, len(body), size, least)
			}
			runtime.KeepAlive(q)
			runtime.KeepAlive(all)
		}
	}
}

func TestTextIsNoStructure(t *testing.T) {
	text := strings.Repeat(`{[,\"`, 1<<20)
	if size := decodedSize([]byte(request(aDelete + `,"weather":"` + text + `"`))); size > 3*int64(len(text)) {
		t.Errorf("a string of %d bytes counts %d", len(text), size)
	}
}

// The largest that an API server can send is decoded: an object of 3 MiB, which an UPDATE holds
// twice.
func TestLargestReviewsAreDecoded(t *testing.T) {
	for name, form := range forms {
		object := `{"metadata":{"name":"web"},"spec":[` + strings.Repeat(form+",", (3<<20)/len(form)) + `0]}`
		body := []byte(request(`,"operation":"UPDATE","object":` + object))
		if size := 2 * decodedSize(body); size > mostDecoded {
			t.Errorf("%s: an UPDATE of twice %d bytes takes up to %d bytes, and there are %d",
				name, len(body), size, int64(mostDecoded))
		}
	}
}

// All that is taken in at once stays below what the chart grants, with a quarter left for all else.
func TestWhatIsTakenInFitsWhatTheChartGrants(t *testing.T) {
	text, err := os.ReadFile("../charts/weir/values.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var values struct {
		Webhook struct {
			Resources struct{ Limits map[string]string }
		}
	}
	if err := yaml.Unmarshal(text, &values); err != nil {
		t.Fatal(err)
	}
	granted, err := resource.ParseQuantity(values.Webhook.Resources.Limits["memory"])
	if err != nil {
		t.Fatal(err)
	}
	const largest = 3 << 19 // of an object that etcd takes
	lists := max(policies.BoundsOf(false).Page*(mostLists/placesOf(false)),
		policies.BoundsOf(true).Page*(mostLists/placesOf(true))) * largest
	const headers = MostStrangers * 2 * mostHeader // and what the server reads ahead
	if taken := int64(mostRoom+headers) + lists; taken > granted.Value()*3/4 {
		t.Errorf("%d bytes are taken in, and the chart grants %d", taken, granted.Value())
	}
}
