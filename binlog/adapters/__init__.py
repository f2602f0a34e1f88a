"""Where the bytes come from: files, live servers, memory. Thin, typed, no evaluation."""
