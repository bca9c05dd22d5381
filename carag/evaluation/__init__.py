"""The evaluation room: measures, and the SEC EDGAR benchmark that is judged by them."""
