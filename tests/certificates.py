"""Makes authorities, certificates and keys for tests, without a server and without a program."""

import ipaddress
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import NameOID

_PEM = serialization.Encoding.PEM
_FORMAT = serialization.PrivateFormat.TraditionalOpenSSL  # yaSSL of 5.6 reads no other
_Key = ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey


class Authority:
    """An authority that signs certificates, and its file. Old servers need keys of RSA."""

    def __init__(self, folder: Path, name: str = "authority", *, is_rsa: bool = False) -> None:
        self.folder = folder
        self._is_rsa = is_rsa
        self._key = self._new_key()
        self._name = _name(name)
        certificate = _signed(self._name, self._key, self._name, self._key, names=(), is_ca=True)
        self.file = folder / f"{name}.pem"
        self.file.write_bytes(certificate.public_bytes(_PEM))

    def certify(
        self, name: str, *, names: tuple[str, ...] = (), passphrase: bytes | None = None
    ) -> tuple[Path, Path]:
        """Return the files of a certificate and its key; `names` are hosts and addresses."""
        key = self._new_key()
        certificate = _signed(_name(name), key, self._name, self._key, names=names, is_ca=False)
        files = self.folder / f"{name}-cert.pem", self.folder / f"{name}-key.pem"
        files[0].write_bytes(certificate.public_bytes(_PEM))
        encryption: serialization.KeySerializationEncryption = serialization.NoEncryption()
        if passphrase is not None:
            encryption = serialization.BestAvailableEncryption(passphrase)
        files[1].write_bytes(key.private_bytes(_PEM, _FORMAT, encryption))
        return files

    def _new_key(self) -> _Key:
        if self._is_rsa:
            return rsa.generate_private_key(public_exponent=65537, key_size=2048)
        return ec.generate_private_key(ec.SECP256R1())


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _signed(
    subject: x509.Name,
    key: _Key,
    issuer: x509.Name,
    issuer_key: _Key,
    *,
    names: tuple[str, ...],
    is_ca: bool,
) -> x509.Certificate:
    now = datetime.now(UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=2))
        .add_extension(x509.BasicConstraints(ca=is_ca, path_length=None), critical=True)
    )
    if names:
        listed = x509.SubjectAlternativeName([_general(name) for name in names])
        builder = builder.add_extension(listed, critical=False)
    return builder.sign(issuer_key, hashes.SHA256())


def _general(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)
