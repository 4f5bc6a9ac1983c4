// Package proxy tests the proxy on real servers, and its page in a real browser.
// It is a module of its own, so that no importer of the proxy gets the browser's
// driver or a Redis client.
package proxy
