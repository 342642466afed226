"""TLS: server contexts, temporary certificates, and a transport that encrypts another one.

Import this module only if TLS is used: importing `ssl` takes longer than importing all of the rest.
"""

from __future__ import annotations

import os
import shutil
import socket
import ssl
import tempfile
import weakref
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from fakeamqp.runtime.errors import BadCertificate, TLSUnavailable
from fakeamqp.runtime.transport import TcpTransport, Transport

if TYPE_CHECKING:
    import trustme

# Plain bytes encrypted per step. It limits the memory per peer, since unsent output is kept.
_STEP = 256 * 1024


class TlsTransport(Transport):
    """TLS over another transport: the server's side, or the client's if a server name is given."""

    secure = True
    certificate_subject: str | None = None
    input_left: bool = False
    """Whether `recv` has to report the end of the peer's side."""

    def __init__(self, inner: Transport, context: ssl.SSLContext, server_name: str | None = None) -> None:
        self._inner = inner
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self._tls = context.wrap_bio(
            self._incoming, self._outgoing, server_side=server_name is None, server_hostname=server_name
        )
        self._unsent: bytes | memoryview = b""
        self._opened = False
        self._shut = False

    @property
    def backlog(self) -> bool:
        return bool(self._unsent) or self._outgoing.pending > 0 or self._inner.backlog

    def fileno(self) -> int:
        return self._inner.fileno()

    def open(self) -> bool:
        if not self._inner.open():
            return False
        data = self._inner.recv()
        if data is not None and not data:
            raise ConnectionAbortedError("the peer ended the connection during the handshake")
        if data:
            self._incoming.write(data)
        try:
            self._tls.do_handshake()
        except ssl.SSLWantReadError:
            self._push()
            return False
        except ssl.SSLError:
            self._shut = True  # No close_notify after a failure: the alert in the backlog is enough.
            self._push()
            raise
        self._push()
        self._opened = True
        self.certificate_subject = _common_name(self._tls.getpeercert())
        return True

    def recv(self) -> bytes | None:
        if self.input_left:
            self.input_left = False
            return b""
        data = self._inner.recv()
        if self._shut:
            return data  # to be discarded, so not worth decrypting
        if data is not None and not data:
            return b""
        if data:
            self._incoming.write(data)
        pieces: list[bytes] = []
        ended = False
        try:
            while piece := self._tls.read(_STEP):
                pieces.append(piece)
            ended = True
        except ssl.SSLWantReadError:
            pass
        except ssl.SSLZeroReturnError:
            ended = True
        self._push()
        if not pieces:
            return b"" if ended else None
        self.input_left = ended
        return b"".join(pieces)

    def send(self, data: bytes | memoryview) -> int:
        self._push()
        taken = 0
        view = memoryview(data)
        while taken < len(view) and not self.backlog:
            taken += self._tls.write(view[taken : taken + _STEP])
            self._push()
        return taken

    def shutdown(self) -> bool:
        if not self._shut:
            self._shut = True
            if self._opened:
                # It usually raises, because the peer's close_notify has not arrived; it is not waited for.
                with suppress(ssl.SSLError):
                    self._tls.unwrap()
        self._push()
        return not self.backlog and self._inner.shutdown()

    def close(self) -> None:
        self._inner.close()

    def reset(self) -> None:
        self._inner.reset()

    def _push(self) -> None:
        while True:
            if not self._unsent:
                if not self._outgoing.pending:
                    return
                self._unsent = self._outgoing.read()
            self._unsent = memoryview(self._unsent)[self._inner.send(self._unsent) :]
            if self._unsent:
                return

    def __repr__(self) -> str:
        return f"<{type(self).__name__} over {self._inner!r}>"


@dataclass(frozen=True)
class ClientCertificate:
    """A client certificate, as an SSL context and as files that exist until `ServerTLS.close`."""

    #: PEM file with the certificate (chain).
    certificate: str
    #: PEM file with the private key.
    key: str
    #: Trusts the broker and presents this certificate.
    context: ssl.SSLContext


class ServerTLS:
    """The certificates and SSL contexts of a TLS listener and of its clients.

    The server asks clients for a certificate if it has an authority to verify it with;
    `require_client_certificate` makes the certificate mandatory.
    """

    def __init__(
        self,
        context: ssl.SSLContext,
        client_context: ssl.SSLContext,
        authority: trustme.CA | None = None,
        ca_file: str | None = None,
    ) -> None:
        #: The server's side.
        self.context = context
        #: For clients: trusts this server and verifies its host name.
        self.client_context = client_context
        self._authority = authority
        self._ca_file = ca_file
        self._folder: Path | None = None
        self._clean: Callable[[], object] | None = None
        self._issued = 0

    @classmethod
    def from_files(
        cls,
        certificate: str | os.PathLike[str],
        key: str | os.PathLike[str],
        *,
        ca: str | os.PathLike[str] | None = None,
        client_ca: str | os.PathLike[str] | None = None,
        require_client_certificate: bool = False,
    ) -> ServerTLS:
        """TLS with your own certificate.

        Args:
            certificate: PEM file with the server's certificate and, if any, its intermediates.
            key: PEM file with its private key.
            ca: PEM file that clients trust; default: the certificate itself, as for self-signed ones.
            client_ca: PEM file of the authority that signed the clients' certificates.
            require_client_certificate: refuse clients without a certificate.

        Raises:
            BadCertificate: a file is missing or invalid, or certificate and key do not match.
        """
        if require_client_certificate and client_ca is None:
            raise BadCertificate(
                "to require client certificates, name the authority that verifies them: client_ca=…"
            )
        trusted = os.fspath(certificate if ca is None else ca)
        try:
            context = _server_context()
            context.load_cert_chain(certificate, key)
            if client_ca is not None:
                context.load_verify_locations(client_ca)
                context.verify_mode = _verify_mode(require_client_certificate)
            client_context = ssl.create_default_context(cafile=trusted)
        except OSError as error:
            raise BadCertificate(
                f"cannot use certificate {os.fspath(certificate)!r} with key {os.fspath(key)!r}, "
                f"ca {ca!r}, client_ca {client_ca!r}: {error}; all must be PEM files that match"
            ) from error
        return cls(context, client_context, ca_file=trusted)

    @classmethod
    def throwaway(
        cls,
        hosts: Iterable[str] = ("localhost", "127.0.0.1", "::1"),
        *,
        require_client_certificate: bool = False,
    ) -> ServerTLS:
        """TLS with a temporary certificate authority that only clients with its certificate trust.

        Args:
            hosts: names and addresses in the server's certificate. A client that asks for another name (SNI)
                gets a certificate for that name, so that interception works.
            require_client_certificate: refuse clients without a certificate.

        Raises:
            TLSUnavailable: the package `trustme` is not installed.
        """
        try:
            import trustme
        except ImportError as error:
            raise TLSUnavailable(
                "TLS without a certificate of your own needs the package trustme: "
                "pip install 'fakeamqp[tls]', or give a certificate and a key"
            ) from error
        authority = trustme.CA(organization_name="fakeamqp throw-away CA")
        known = tuple(hosts)

        def context_for(*names: str) -> ssl.SSLContext:
            context = _server_context()
            authority.issue_cert(*names).configure_cert(context)
            authority.configure_trust(context)
            context.verify_mode = _verify_mode(require_client_certificate)
            return context

        contexts: dict[str, ssl.SSLContext] = {}

        def choose(tls: ssl.SSLObject | ssl.SSLSocket, name: str | None, _: ssl.SSLContext) -> None:
            if name and name not in known:
                if name not in contexts:
                    contexts[name] = context_for(name)
                tls.context = contexts[name]

        context = context_for(*known)
        context.sni_callback = choose
        return cls(context, _client_context(authority), authority)

    def wrap(self, sock: socket.socket) -> TlsTransport:
        """A TLS transport over an accepted socket."""
        return self.over(TcpTransport(sock))

    def over(self, transport: Transport) -> TlsTransport:
        """A TLS transport over a plain one."""
        return TlsTransport(transport, self.context)

    @property
    def ca_file(self) -> str:
        """Path of a PEM file with the certificate to trust. `close` removes a temporary one."""
        if self._ca_file is None:
            assert self._authority is not None
            path = self._temporary() / "ca.pem"
            self._authority.cert_pem.write_to_path(path)
            self._ca_file = os.fspath(path)
        return self._ca_file

    def client_certificate(self, common_name: str) -> ClientCertificate:
        """A client certificate with this common name, which SASL EXTERNAL uses as the user name.

        Raises:
            TLSUnavailable: the server uses a certificate of your own, so its authority cannot sign here.
        """
        if self._authority is None:
            raise TLSUnavailable(
                "the temporary CA signs client certificates; with a server certificate of your own, "
                "create them with your own authority"
            )
        self._issued += 1
        issued = self._authority.issue_cert(common_name=common_name)
        certificate = self._temporary() / f"client-{self._issued}.pem"
        key = self._temporary() / f"client-{self._issued}-key.pem"
        for blob in issued.cert_chain_pems:
            blob.write_to_path(certificate, append=True)
        issued.private_key_pem.write_to_path(key)
        key.chmod(0o600)
        context = _client_context(self._authority)
        issued.configure_cert(context)
        return ClientCertificate(os.fspath(certificate), os.fspath(key), context)

    def close(self) -> None:
        """Remove the temporary files, which otherwise exist until the process ends. Idempotent."""
        if self._clean is not None:
            self._clean()
            self._folder = self._clean = None
            if self._authority is not None:
                self._ca_file = None

    def _temporary(self) -> Path:
        if self._folder is None:
            self._folder = Path(tempfile.mkdtemp(prefix="fakeamqp-tls-"))
            self._clean = weakref.finalize(self, _remove, self._folder, os.getpid())
        return self._folder


def _server_context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    # With renegotiation a write could wait for a read, and the loop would spin on a writable socket.
    context.options |= ssl.OP_NO_RENEGOTIATION
    return context


def _client_context(authority: trustme.CA) -> ssl.SSLContext:
    return ssl.create_default_context(cadata=authority.cert_pem.bytes().decode("ascii"))


def _verify_mode(required: bool) -> ssl.VerifyMode:
    return ssl.CERT_REQUIRED if required else ssl.CERT_OPTIONAL


def _common_name(certificate: object) -> str | None:
    if isinstance(certificate, dict):
        for names in certificate.get("subject", ()):
            for kind, value in names:
                if kind == "commonName":
                    return str(value)
    return None


def _remove(folder: Path, owner: int) -> None:
    if os.getpid() == owner:  # a forked child keeps its parent's files
        shutil.rmtree(folder, ignore_errors=True)
