SCREEN=80 vcbatch jobflow list
SCREEN=80 vcbatch jobflow describe nightly-eval
vcbatch jobflow graph pipeline
SCREEN=80 vcbatch jobflow graph nightly-eval
vcbatch jobflow graph nightly-eval -o dot
vcbatch jobflow get pipeline -o name
vcbatch jobtemplate list
vcbatch jobtemplate describe train
vcbatch jobtemplate get train -o 'jsonpath={.kind}'
