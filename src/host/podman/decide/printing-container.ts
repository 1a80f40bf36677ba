/** The container in which a program prints something and ends: it sees nothing of the host. Pure. */
import type { ImageReference } from '../../../reconciler/ports.ts';

/** The body of `POST /libpod/containers/create`. Pure. */
export function printingContainer({ reference, imageId }: ImageReference, program: string, rest: readonly string[]) {
  return {
    image: reference.startsWith('localhost/') ? (imageId ?? reference) : reference,
    entrypoint: [program],
    command: rest,
    env: { HOME: '/tmp' },
    httpproxy: false,
    netns: { nsmode: 'none' },
    mounts: [{ type: 'tmpfs', destination: '/tmp', options: ['rw', 'nosuid', 'nodev', 'mode=1777', 'size=64m'] }],
    image_volume_mode: 'ignore',
    cap_drop: ['ALL'],
    no_new_privileges: true,
    read_only_filesystem: true,
    restart_policy: 'no',
    log_configuration: { driver: 'k8s-file', size: 16 * 1024 * 1024 },
  };
}
