// Package copied copies values for tests, with all that they lead to: a test goes on with the copy,
// and the original stays as it was.
package copied

import (
	"bytes"
	"reflect"
	"sync"
	"unsafe"
)

// Of returns an independent copy of what v points to. Unexported fields are copied, too. Functions,
// channels, and what an interface holds are shared.
func Of[T any](v *T) *T {
	c := *v
	deepen(reflect.ValueOf(&c).Elem())
	return &c
}

// deepen replaces what a value leads to by copies. The value itself is a copy, and can be set.
func deepen(v reflect.Value) {
	if plain(v.Type()) || empty(v) {
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			field := v.Field(i)
			deepen(reflect.NewAt(field.Type(), unsafe.Pointer(field.UnsafeAddr())).Elem()) // which can be set
		}
	case reflect.Array:
		for i := range v.Len() {
			deepen(v.Index(i))
		}
	case reflect.Pointer:
		if !v.IsNil() {
			v.Set(addressable(v.Elem()).Addr())
			deepen(v.Elem())
		}
	case reflect.Slice:
		if !v.IsNil() {
			all := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
			reflect.Copy(all, v)
			v.Set(all)
			if !plain(v.Type().Elem()) {
				for i := range v.Len() {
					deepen(v.Index(i))
				}
			}
		}
	case reflect.Map:
		if !v.IsNil() {
			all := reflect.MakeMapWithSize(v.Type(), v.Len())
			for each := v.MapRange(); each.Next(); {
				val := addressable(each.Value())
				deepen(val)
				all.SetMapIndex(each.Key(), val)
			}
			v.Set(all)
		}
	}
}

// empty reports whether a value is zero and so leads to nothing, as most places of a graph's slabs.
// It reads the memory: IsZero goes through the fields, one by one.
func empty(v reflect.Value) bool {
	memory := unsafe.Slice((*byte)(v.Addr().UnsafePointer()), v.Type().Size())
	return bytes.Count(memory, []byte{0}) == len(memory)
}

func addressable(v reflect.Value) reflect.Value {
	a := reflect.New(v.Type()).Elem()
	a.Set(v)
	return a
}

var known sync.Map // types → bool

// plain reports whether a copy of a value of a type shares nothing with the value that it should
// not.
func plain(t reflect.Type) (yes bool) {
	if said, ok := known.Load(t); ok {
		return said.(bool)
	}
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map:
		return false
	case reflect.Array:
		yes = plain(t.Elem())
	case reflect.Struct:
		yes = true
		for i := range t.NumField() {
			yes = yes && plain(t.Field(i).Type)
		}
	default:
		yes = true
	}
	known.Store(t, yes)
	return yes
}
