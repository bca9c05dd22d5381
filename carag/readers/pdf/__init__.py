"""Read PDF files: pypdf checks that a file is whole, and PDFium extracts what its pages show."""
