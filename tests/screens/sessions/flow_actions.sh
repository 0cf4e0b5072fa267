vcbatch jobflow suspend going nope held
vcbatch jobflow resume going held
vcbatch jobflow retry going nightly-eval
vcbatch jobflow cancel pipeline nightly-eval
vcbatch jobflow suspend nightly-eval pipeline
vcbatch jobflow resume nightly-eval
