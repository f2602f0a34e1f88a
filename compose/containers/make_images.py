"""`make images`: every image of the stack that Debian packages can make, and the auditor's.

Grafana is not among them: Debian has no package of it.
"""

import sys

from compose.containers.auditor_image import AUDITOR_IMAGE, build_auditor_image
from compose.containers.engine import docker_environment
from compose.containers.package_images import PACKAGE_IMAGES, build_package_image
from compose.native.installation import ProviderMissing


def main() -> int:
    """Make all images, with progress; exit status 1 if one cannot be made. Takes 2 to 4 minutes."""
    try:
        docker_environment()
        for image in PACKAGE_IMAGES:
            build_package_image(image, progress=_say)
        names = {image.variable: image.name for image in PACKAGE_IMAGES}
        bases = {variable: names[variable] for variable in ("PYTHON_IMAGE", "BUILD_IMAGE")}
        build_auditor_image(bases, progress=_say)
    except ProviderMissing as missing:
        print(missing, file=sys.stderr)
        return 1
    for image in PACKAGE_IMAGES:
        print(f"{image.variable}={image.name}")
    print(f"AUDITOR_IMAGE={AUDITOR_IMAGE}")
    print("Debian has no package of Grafana: its image has to be pulled.")
    return 0


def _say(line: str) -> None:
    print(line, flush=True)


if __name__ == "__main__":
    sys.exit(main())
