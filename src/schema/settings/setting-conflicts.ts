/** Rules about several settings at once. Pure. */
import { findGitConflicts } from './git-settings.ts';

export const DEFAULT_PORT = 8080;

type CheckedSettings = Parameters<typeof findGitConflicts>[0] & {
  readonly SVC_WORKERS: number | 'auto';
  readonly SVC_CONTROL_PLANE: 'shared' | 'separate';
  readonly SVC_FAST_PATH: boolean;
  readonly SVC_LISTEN?: { readonly port: number } | undefined;
  readonly SVC_MANAGEMENT_LISTEN?: { readonly port: number } | undefined;
  readonly SVC_LIMITS_URL?: string | undefined;
  readonly SVC_LIMITS_PASSWORD_FILE?: string | undefined;
};

/** Settings that are valid one by one, but not together. */
export function findConflicts({ SVC_WORKERS: workers, SVC_FAST_PATH: fastPath, ...others }: CheckedSettings): readonly string[] {
  const { SVC_LISTEN: models, SVC_MANAGEMENT_LISTEN: management } = others;
  const samePort = management !== undefined && management.port !== 0 && management.port === (models?.port ?? DEFAULT_PORT);
  if (samePort) return [`"SVC_MANAGEMENT_LISTEN" and "SVC_LISTEN" have the same port ${management.port}: use two ports, or leave it out`];
  if (others.SVC_LIMITS_PASSWORD_FILE !== undefined && others.SVC_LIMITS_URL === undefined)
    return ['"SVC_LIMITS_PASSWORD_FILE" has no effect without "SVC_LIMITS_URL": set both, or leave it out'];
  const git = findGitConflicts(others);
  if (git.length > 0 || fastPath) return git;
  if (others.SVC_CONTROL_PLANE === 'separate')
    return ['Workers serve the fast path only, which is off: set "SVC_FAST_PATH" to 1, or "SVC_CONTROL_PLANE" to "shared"'];
  if (workers === 1) return [];
  return [`Workers serve the fast path only, which is off: set "SVC_FAST_PATH" to 1, or "SVC_WORKERS" to 1 instead of "${workers}"`];
}
