"""Adapters between topology and its inputs: live servers, pasted output, files, memory."""
