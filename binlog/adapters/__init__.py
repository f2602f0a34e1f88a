"""The sources of the bytes: files, live servers, memory. Thin and typed, without evaluation."""
