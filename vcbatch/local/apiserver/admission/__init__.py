"""Admission: webhooks that change or refuse a request, between defaulting and storing.

`request` is what is about to happen, `hooks` reads the stored webhook configurations, `matching` says which of them a
request concerns, `reviews` writes AdmissionReviews and reads the answers, `remote` asks over HTTPS, and `webhooks` goes
through them in the order of a real API server. A webhook of a `Service` that lives in this process is called directly.
"""

from __future__ import annotations

from vcbatch.local.apiserver.admission.request import Admission, AdmissionRequest, Answer, Asked, NoAdmission, Service

__all__ = ["Admission", "AdmissionRequest", "Answer", "Asked", "NoAdmission", "Service"]
