"""The admission chain: mutating webhooks one after the other, validating ones concurrently.

Source: apiserver `pkg/admission/plugin/webhook/{mutating,validating}/dispatcher.go`, `pkg/admission/reinvocation.go`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from vcbatch.api.resources import SERVICES
from vcbatch.interfaces import Random
from vcbatch.local.apiserver.admission import matching
from vcbatch.local.apiserver.admission.hooks import Hook, hooks_of
from vcbatch.local.apiserver.admission.matching import Place
from vcbatch.local.apiserver.admission.remote import CallFailed, Remote
from vcbatch.local.apiserver.admission.request import AdmissionRequest, Answer, Asked, Service
from vcbatch.local.apiserver.admission.reviews import (
    InvalidAnswer,
    read_answer,
    refusal,
    review,
    review_request,
)
from vcbatch.local.apiserver.apierrors import StatusError, bad_request, internal
from vcbatch.local.apiserver.expressions import TooLong
from vcbatch.local.apiserver.history import Change
from vcbatch.local.apiserver.kinds.admission import EXEMPT, MUTATING, VALIDATING
from vcbatch.local.apiserver.offload import Inline, Offload
from vcbatch.local.apiserver.patch.json_patch import JsonPatchError, apply
from vcbatch.local.apiserver.registry import RequestContext, Served
from vcbatch.local.apiserver.served import ServedSet
from vcbatch.local.apiserver.store import Store, collection_of

Json = dict[str, Any]

log = logging.getLogger(__name__)

Services = Mapping[tuple[str, str], Service]
"""Services in this process by namespace and name."""

_COLLECTIONS = frozenset({collection_of(MUTATING), collection_of(VALIDATING)})
_HARMLESS = ("None", "NoneOnDryRun")


@dataclass(frozen=True, slots=True)
class _Call:
    """A webhook that may have to be called, and the entry in whose version it gets the objects."""

    hook: Hook
    entry: Served


class Webhooks:
    """The `Admission` of the stored webhook configurations."""

    def __init__(
        self,
        *,
        store: Store,
        served: ServedSet,
        random: Random,
        services: Services,
        notices: Callable[[AdmissionRequest], Sequence[str]] | None = None,
        offload: Offload | None = None,
    ) -> None:
        self._offload = offload or Inline()
        self._store = store
        self._served = served
        self._random = random
        self._services = services
        self._notices = notices
        self._remote = Remote()
        self._hooks: dict[bool, list[Hook]] | None = None
        self._calls: dict[tuple[bool, Place], Sequence[_Call]] = {}
        self._calls_for: Sequence[Served] = ()
        store.subscribe(self._on_change)

    async def close(self) -> None:
        """Close the connections to webhooks."""
        await self._remote.close()

    def _on_change(self, collection: str, _change: Change) -> None:
        if collection in _COLLECTIONS:
            self._hooks = None

    # -- the chain --------------------------------------------------------------------------------------------------

    async def mutate(self, request: AdmissionRequest) -> Json | None:
        """Call webhooks in the order of the configurations' names and of the webhooks in them. Those with a
        reinvocation policy are called once more where a later one changed the object."""
        calls = self._concerned(request, mutating=True)
        if not calls:
            return request.object
        current = request
        asked: set[int] = set()  # to be called again if the object changes now
        again: set[int] = set()
        for second in (False, True):
            for number, call in enumerate(calls):
                if second and number not in again:
                    continue
                answer = await self._asked(call, current, mutating=True)
                if answer is None:
                    continue
                changed = self._patched(call, current, answer)
                if changed is not current.object:
                    again |= asked
                    asked.clear()
                    current = replace(current, object=changed)
                if call.hook.reinvoked:
                    asked.add(number)
            if not again:
                break
        return current.object

    def _patched(self, call: _Call, request: AdmissionRequest, answer: Answer) -> Json | None:
        """The object after one webhook's response; the same one where it is unchanged."""
        if not answer.patch:
            return request.object
        if request.object is None:
            raise internal(
                f'admission webhook "{call.hook.name}" attempted to modify the object, which is not supported for this '
                "operation"
            )
        own = self._own(request)
        try:
            changed = apply(matching.equivalent_conversion(own, call.entry, request.object), answer.patch)
        except JsonPatchError as error:
            raise internal(str(error)) from error
        if not isinstance(changed, dict):
            raise internal(f'admission webhook "{call.hook.name}" made something else of the object')
        changed = matching.equivalent_conversion(call.entry, own, changed)
        return request.object if changed == request.object else changed

    async def validate(self, request: AdmissionRequest) -> None:
        """Call all concurrently; one refusal is reported. Those in this process are called first."""
        if self._notices and request.operation == "CREATE" and not request.subresource:
            request.ctx.warnings.extend(self._notices(request))
        calls = self._concerned(request, mutating=False)
        remote = [call for call in calls if self._service(call.hook) is None]
        for call in calls:
            if call not in remote:
                await self._asked(call, request, mutating=False)
        if not remote:
            return
        outcomes = await asyncio.gather(
            *(self._asked(call, request, mutating=False) for call in remote), return_exceptions=True
        )
        for outcome in outcomes:
            if isinstance(outcome, BaseException):
                raise outcome

    # -- matching ---------------------------------------------------------------------------------------------------

    def _concerned(self, request: AdmissionRequest, *, mutating: bool) -> Sequence[_Call]:
        """The webhooks whose rules match such requests, in order. Cached, since requests of few kinds are repeated."""
        if self._hooks is None or self._calls_for is not self._served.all:
            self._hooks = self._hooks or {True: self._read(MUTATING), False: self._read(VALIDATING)}
            self._calls_for = self._served.all
            self._calls = {}
        hooks = self._hooks[mutating]
        if not hooks or request.resource in EXEMPT:
            return ()
        key = (mutating, Place.of(request))
        calls = self._calls.get(key)
        if calls is None:
            found = ((hook, self._entry_for(hook, key[1])) for hook in hooks)
            calls = self._calls[key] = [_Call(hook, entry) for hook, entry in found if entry is not None]
        return calls

    def _read(self, resource: Any) -> list[Hook]:
        return [hook for record in self._store.collection(resource).sorted(None) for hook in hooks_of(record.decode())]

    def _entry_for(self, hook: Hook, place: Place) -> Served | None:
        return matching.served_as(hook.rules, place, self._served, equivalent=hook.equivalent)

    def _own(self, request: AdmissionRequest) -> Served:
        resource = request.resource
        entry = self._served.at(resource.group, resource.version, resource.plural)
        assert entry is not None  # noqa: S101 - the request came through it
        return entry

    # -- calls ------------------------------------------------------------------------------------------------------

    async def _asked(self, call: _Call, request: AdmissionRequest, *, mutating: bool) -> Answer | None:
        """The response of one webhook, None where the request doesn't match. Raises `StatusError` where it refuses the
        request, or fails and its failure policy is Fail."""
        hook = call.hook
        if not matching.selected_namespace(hook.namespace_selector, request, self._store):
            return None
        if not matching.selected_object(hook.object_selector, request):
            return None
        asked = self._review(call, request)
        if hook.conditions and not await self._fulfilled(hook, request, asked):
            return None
        if request.ctx.dry_run and hook.side_effects not in _HARMLESS:
            raise bad_request(f'admission webhook "{hook.name}" does not support dry run')
        try:
            answer = await self._answer(hook, asked, request.ctx, mutating=mutating)
        except CallFailed as error:
            said = f'failed calling webhook "{hook.name}": {error}'
            if not hook.ignores_failure:
                raise internal(said) from error
            log.warning("%s; it is ignored", said)
            return Answer(allowed=True)
        request.ctx.warnings.extend(answer.warnings)
        if not answer.allowed:
            raise refusal(hook.name, answer.status)
        return answer

    async def _fulfilled(self, hook: Hook, request: AdmissionRequest, asked: Json) -> bool:
        def judge(*, patient: bool) -> bool:
            return matching.fulfilled(
                hook.conditions, request, asked, ignores_failure=hook.ignores_failure, patient=patient
            )

        try:
            return judge(patient=False)
        except TooLong:
            return await self._offload.run(lambda: judge(patient=True))

    def _review(self, call: _Call, request: AdmissionRequest) -> Json:
        obj, old = request.object, request.old
        if call.entry.resource != request.resource:
            own = self._own(request)
            obj, old = (one and matching.equivalent_conversion(own, call.entry, one) for one in (obj, old))
        return review_request(request, self._random.uid(), call.entry, obj, old)

    def _service(self, hook: Hook) -> Service | None:
        client = hook.client
        return None if client.url else self._services.get((client.namespace, client.name))

    def _unreachable(self, hook: Hook) -> str:
        client = hook.client
        found = self._store.get(SERVICES, client.namespace, client.name)
        why = f'service "{client.name}" not found' if found is None else "nothing serves services here: use a url"
        return f'Post "{client.address}?timeout={hook.seconds}s": {why}'

    async def _answer(self, hook: Hook, asked: Json, ctx: RequestContext, *, mutating: bool) -> Answer:
        """The response of one webhook. Raises `CallFailed`."""
        service = self._service(hook)
        if service is not None:
            try:
                return await service(Asked(path=hook.client.path, request=asked, ctx=ctx))
            except StatusError:
                raise
            except Exception as error:
                log.exception("webhook %s failed in this process", hook.name)
                raise CallFailed(f"failed to call webhook: {error}") from error
        if not hook.client.url:
            raise CallFailed(f"failed to call webhook: {self._unreachable(hook)}")
        try:
            async with asyncio.timeout(hook.seconds):
                document = await self._remote.ask(hook, review(asked, hook.review_version))
        except TimeoutError as error:
            url = f"{hook.client.address}?timeout={hook.seconds}s"
            raise CallFailed(f'failed to call webhook: Post "{url}": context deadline exceeded') from error
        try:
            return read_answer(document, uid=asked["uid"], version=hook.review_version, mutating=mutating)
        except InvalidAnswer as error:
            raise CallFailed(str(error)) from error
