//go:build full

package e2e

func either(int) []mode { return []mode{replace, companion} }

const histories = 150
