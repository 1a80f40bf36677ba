/** Makes this the only service that uses its state directory and its configuration directory, or says which process already does. */
import { lockDirectory, type DirectoryLock, type LockAnswer } from '../files/directory-lock.ts';
import type { Log } from '../platform/log.ts';
import { fail, ok, type Result } from '../schema/words/failure.ts';
import type { Settings } from '../schema/settings/settings.ts';

export interface DirectoryLocks {
  readonly state: DirectoryLock;
  /** Locks whatever is now at the path of the state directory. */
  lockStateAgain(): Promise<LockAnswer>;
  release(): void;
}

type LockSettings = Pick<Settings, 'SVC_STATE_DIR' | 'SVC_CONFIG_DIR'>;

/**
 * The configuration directory says which slots there are, so two services with the same one would both start them, whatever their state directories are. It is
 * locked only where it is writable: in a cluster it is not, and there the leader is the one that acts.
 */
export async function lockDirectories(settings: LockSettings, since: number, log: Pick<Log, 'debug'>): Promise<Result<DirectoryLocks>> {
  const { SVC_STATE_DIR: stateDir, SVC_CONFIG_DIR: configDir } = settings;
  const lockState = async (): Promise<LockAnswer> => await lockDirectory({ directory: stateDir, name: 'service', since });
  const state = await lockState();
  if (state.kind === 'held') return inUse('SVC_STATE_DIR', stateDir, state.holder);
  if (state.kind === 'unusable') {
    const message = `Make "${stateDir}" writable, or set "SVC_STATE_DIR" to another directory: ${state.message}`;
    return fail('stalled', 'SettingUnusable', message);
  }
  const config = await lockDirectory({ directory: configDir, name: '.service', since });
  if (config.kind === 'held') {
    state.lock.release();
    return inUse('SVC_CONFIG_DIR', configDir, config.holder);
  }
  if (config.kind === 'unusable') log.debug({ directory: configDir, error: config.message }, 'The configuration directory is not locked');
  return ok({
    state: state.lock,
    lockStateAgain: lockState,
    release() {
      state.lock.release();
      if (config.kind === 'locked') config.lock.release();
    },
  });
}

function inUse(key: keyof LockSettings, directory: string, holder: string): Result<never> {
  const message = `Stop the other service first, or set "${key}" to another directory: ${holder} already uses "${directory}"`;
  return fail('stalled', 'SettingUnusable', message);
}
