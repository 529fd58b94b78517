{{- define "gvList" -}}
# API reference

<!-- make generate writes this page from the comments of policies/v1beta1. -->

The kinds of `weir.dev/v1beta1`, all cluster-scoped. [policies/](policies/deletion-policy.md) says
what each is for, with examples. `kubectl explain` has the bounds of each field, too.
{{ range . }}{{ $group := . }}
{{- range .SortedKinds }}
* [{{ . }}](#{{ lower . }})
{{- end }}

## If several policies match

Each policy's protection, brake and rules apply. Where only one can apply, it is that of the policy
with the highest `priority`, or among equals, that of the first by name.

| part | of several |
|---|---|
| DeletionPolicy: `protection` | each |
| DeletionPolicy: `brake` | each: the lowest limit is reached first |
| DeletionPolicy: the whole of `propagation` | one, by `priority` and name |
| OwnerReferencePolicy: all parts | each |
| DrainPolicy: `waves` | one, by `priority` and name |
| `validationActions`, `failurePolicy` | each policy's own are for what it finds |

{{ range .SortedKinds }}{{ template "type" ($group.TypeForKind .) }}{{ end }}
## Types of their fields

{{ range .SortedTypes }}{{ if and (not .GVK) (markdownShouldRenderType .) (ne .Name "PolicyMessage") }}{{ template "type" . }}{{ end }}{{ end }}
{{- end }}
## Labels, annotations and finalizers

All have the prefix `weir.dev/`.

| name | is | on | written by | says |
|---|---|---|---|---|
| `weir.dev/propagation` | finalizer | what a policy with propagation or a brake is about | Weir | holds the object until its deletion is carried out as the policy says |
| `weir.dev/propagation` | annotation | what a policy with `propagation.annotation: Allow` is about | who may delete the object | Background, Foreground or Orphan: how it is deleted |
| `weir.dev/armed-at` | annotation | the same, if it existed before the policy | Weir | when the finalizer was added |
| `weir.dev/confirm-delete` | annotation | what a policy wants confirmed | users | the uid of the object, or UID/DIGEST: the delete is confirmed |
| `weir.dev/confirmed` | annotation | what has `weir.dev/confirm-delete` | Weir | when it was confirmed and by whom, with a seal |
| `weir.dev/kept` | annotation | what was garbage, and a policy protects or a person keeps | Weir | why it was released from its owners |
| `weir.dev/retained` | annotation | a PersistentVolume that an archive has stay | the controller; taken off by who restores | POLICY/TREE/UID: its reclaim policy before, the deleted tree, and the uid of its claim |
| `weir.dev/restored` | annotation | what `kubectl weir restore` made | who restores | TREE/UID: the deleted tree, and the uid that it had there |
| `weir.dev/drain` | annotation | a terminating Namespace | Weir | the wave that drains now |
| `weir.dev/drain-since` | annotation | a terminating Namespace | Weir | when that wave began |
| `weir.dev/drain-seal` | annotation | a terminating Namespace | Weir | that Weir wrote these two |
| `weir.dev/canary` | label | one Lease in Weir's namespace | Weir | that its dry-run deletes show whether the webhook is asked |
| `weir.dev/in-process` | label | ValidatingAdmissionPolicies and bindings | Weir | that Weir keeps them, for its policies |
| `weir.dev/collects` | label | the ConfigMap `weir-collector-canary` | Weir | that it was made by a Weir that collects by itself |
| `weir.dev/canary-time` | annotation | the ConfigMap `weir-collector-canary` | Weir | how long it must stand before Weir collects |
| `weir.dev/collected` | annotation | Events with the reason `Cascade` | Weir | the first objects that were collected, as JSON |
| `weir.dev/metrics` | label | Services of the chart | Helm | what a ServiceMonitor selects |

`weir.dev/protected` is no key of an object: it is the cause in the details of a refusal, by which a
collector that is Weir knows that a policy protects the object.

## How the API will change

* Within `v1beta1` fields are added, with a default that means what was so before. None changes its
  meaning or goes away, and no value of an enum goes. A rule of the schema that becomes stricter
  holds for what is written from then on: what is stored stays, and from Kubernetes 1.30 on an
  update may leave as it is what it does not touch.
* What has to change its shape comes as a new version, which is served beside the old one for at
  least two minor releases of Weir. Weir's webhook converts, from the version that is stored, and
  every object can go there and back without loss: what the old version cannot say is kept in an
  annotation. While the webhook does not answer, objects in the other version cannot be read, so
  Weir itself reads the stored version, which needs no conversion.
* The new version is stored from the next minor release on. Objects that were stored before are
  written once more: `kubectl get delpol,ownpol,drainpol,held -o json | kubectl replace -f -`, or a
  StorageVersionMigration where the cluster has them. Then the old version is taken out of
  `status.storedVersions` of the CRDs, and only after that it is not served any more.
* Policies that are files are read in every version that is served; `weir policy lint` says what a
  field is called now.

`v1alpha1` was never released: there is no conversion from it.
{{- "\n" }}
{{- end -}}
