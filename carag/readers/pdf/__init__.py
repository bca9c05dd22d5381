"""Read PDF files: pypdf checks that a file is whole and says what it holds, PDFium says what its pages show."""
