"""The admission service: AdmissionReview in and out over the pure rules of `vcbatch.api`."""
