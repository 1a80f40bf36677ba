/** Which quantisations a repository offers, without downloading or remembering any. */
import { ok, type Result } from '../../schema/words/failure.ts';
import { listQuantisations, type Quantisation } from '../decide/choose-files.ts';
import type { HubName } from '../decide/parse-model-name.ts';
import type { HubAccess } from './hub-access.ts';
import { createHubClient } from './hub-client.ts';

export async function readQuantisations(hub: HubAccess, { repo }: HubName, signal: AbortSignal): Promise<Result<readonly Quantisation[]>> {
  const client = createHubClient(hub);
  const described = await client.describe(repo, signal);
  if (!described.ok) return described;
  const files = await client.list(repo, described.value.commit, signal);
  return files.ok ? ok(listQuantisations(files.value)) : files;
}
