/** Finds the socket of podman's API: the configured one, or the first of the usual ones that answers. */
import { podmanAnswers } from './podman-api.ts';

/** A configured socket is returned without checking that it answers, so that a wrong one is reported instead of ignored. */
export async function findPodmanSocket(
  env: Readonly<Record<string, string | undefined>>,
  signal?: AbortSignal,
): Promise<string | undefined> {
  const configured = env['SVC_PODMAN_SOCKET'] ?? env['CONTAINER_HOST'];
  const path = configured === undefined || configured === '' ? undefined : unixPath(configured);
  if (path !== undefined) return path;
  for (const candidate of usualSockets(env)) {
    if (await podmanAnswers(candidate, signal)) return candidate;
  }
  return undefined;
}

/** Accepts `unix:///path` or a path; undefined for podman's remote forms (`ssh://`, `tcp://`), whose bind mounts would refer to another machine. */
function unixPath(text: string): string | undefined {
  const path = text.replace(/^unix:(\/\/)?/, '');
  return path.startsWith('/') ? path : undefined;
}

function usualSockets(env: Readonly<Record<string, string | undefined>>): string[] {
  const uid = process.getuid?.();
  const runtimeDir = env['XDG_RUNTIME_DIR'];
  const candidates = [
    ...(runtimeDir?.startsWith('/') === true ? [`${runtimeDir}/podman/podman.sock`] : []),
    ...(uid === undefined ? [] : [`/run/user/${uid}/podman/podman.sock`]),
    '/run/podman/podman.sock',
  ];
  return [...new Set(candidates)];
}
