"""The report on a fit as one HTML page. See docs/report.md."""
