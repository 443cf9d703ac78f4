"""Plain values that formats, engines and statements share: no I/O, no SQL, no format."""
