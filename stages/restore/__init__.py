"""Stage 9: every edit out again, proved; what the capture left lying about, named; the contradicted facts, listed."""
