/** Which socket podman's API is at: the one that was named, or the first of the usual ones that answers. */
import { podmanAnswers } from './podman-api.ts';

/** A named socket is taken at its word, answering or not, so that a wrong one is reported and not passed over. */
export async function findPodmanSocket(
  env: Readonly<Record<string, string | undefined>>,
  signal?: AbortSignal,
): Promise<string | undefined> {
  const named = env['SVC_PODMAN_SOCKET'] ?? env['CONTAINER_HOST'];
  const path = named === undefined || named === '' ? undefined : unixPath(named);
  if (path !== undefined) return path;
  for (const candidate of usualSockets(env)) {
    if (await podmanAnswers(candidate, signal)) return candidate;
  }
  return undefined;
}

/** `unix:///path` or a bare path; undefined for podman's remote forms (`ssh://`, `tcp://`), whose bind mounts would be another machine's. */
function unixPath(text: string): string | undefined {
  const path = text.replace(/^unix:(\/\/)?/, '');
  return path.startsWith('/') ? path : undefined;
}

function usualSockets(env: Readonly<Record<string, string | undefined>>): string[] {
  const uid = process.getuid?.();
  const runtimeDir = env['XDG_RUNTIME_DIR'];
  const found = [
    ...(runtimeDir?.startsWith('/') === true ? [`${runtimeDir}/podman/podman.sock`] : []),
    ...(uid === undefined ? [] : [`/run/user/${uid}/podman/podman.sock`]),
    '/run/podman/podman.sock',
  ];
  return [...new Set(found)];
}
