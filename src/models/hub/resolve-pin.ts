/** Asks the Hub what a name means, and turns the answer into a pin: the files to fetch, at the newest commit. */
import { fail, ok, type Result } from '../../schema/words/failure.ts';
import type { ModelId } from '../../schema/words/names.ts';
import { chooseFiles } from '../decide/choose-files.ts';
import type { HubName } from '../decide/parse-model-name.ts';
import { pinnedFiles, type Pin } from '../decide/pin.ts';
import type { HubAccess } from './hub-access.ts';
import { createHubClient } from './hub-client.ts';

export interface NameToResolve {
  readonly id: ModelId;
  readonly name: HubName;
  readonly hub: HubAccess;
  /** Memory for the model where its name does not say which quantisation is wanted. Undefined: unknown. */
  readonly fitsBytes: number | undefined;
}

/** Nothing is kept; the caller decides where the pin belongs. */
export async function resolvePin({ id, name, hub, fitsBytes }: NameToResolve, signal: AbortSignal): Promise<Result<Pin>> {
  const client = createHubClient(hub);
  const repo = await client.describe(name.repo, signal);
  if (!repo.ok) return repo;
  const { commit, license, licenseUrl, isGated } = repo.value;
  const files = await client.list(name.repo, commit, signal);
  if (!files.ok) return files;
  const choice = chooseFiles(files.value, name, fitsBytes);
  if (choice.kind === 'none') return fail('stalled', 'ModelMissing', choice.message);
  if (choice.kind === 'too-large') return fail('stalled', 'ModelTooLarge', choice.message);
  const pinned = pinnedFiles({ repo: name.repo, commit, chosen: choice.files });
  if ('problem' in pinned) return fail('stalled', 'ModelMissing', `Use another file or repository: ${pinned.problem}`);
  return ok({
    version: 1,
    id,
    files: [...pinned.files],
    isGated,
    ...(license === undefined ? {} : { license }),
    ...(licenseUrl === undefined ? {} : { licenseUrl }),
  });
}
