/** `svcctl model pull|rm`, which ask the service. */
import path from 'node:path';
import { sleep } from '../../platform/clock.ts';
import type { Cli } from '../cli.ts';
import { anything } from '../connect/answer-shape.ts';
import { ModelsAnswer, PullsAnswer } from '../connect/api-answers.ts';
import type { Client } from '../connect/client.ts';
import { checkedModelId } from '../connect/checked-names.ts';
import type { ServiceOptions } from '../connect/service-options.ts';
import { CliFailure, usageFailure } from '../output/exit-codes.ts';
import { shareOf, speedText, transferText } from '../output/slot-progress.ts';
import { withoutControls } from '../output/terminal.ts';

export interface PullOptions extends ServiceOptions {
  readonly acceptLicense?: boolean;
  readonly sha256?: string;
  readonly as?: string;
  /** False with `--no-wait`. */
  readonly wait: boolean;
}

export async function runModelPull(cli: Cli, options: PullOptions, name: string): Promise<void> {
  const { id, body } = requestOf(options, name);
  const client = await cli.connect(options);
  await client.request('POST', `/api/models/${encodeURIComponent(id)}/pull`, anything, { body });
  if (!options.wait) {
    cli.terminal.line(`model/${id} pulling; "svcctl get pulls" shows the progress`);
    return;
  }
  await untilPulled(cli, client, id);
  cli.terminal.line(`model/${id} present`);
}

export async function runModelRemove(cli: Cli, options: ServiceOptions, ...names: string[]): Promise<void> {
  const ids = names.map(checkedModelId);
  const client = await cli.connect(options);
  for (const id of ids) {
    await client.request('DELETE', `/api/models/${encodeURIComponent(id)}`, anything);
    cli.terminal.line(`model/${id} removed`);
  }
}

function requestOf({ acceptLicense, sha256, as }: PullOptions, name: string): { readonly id: string; readonly body: unknown } {
  const accept = { accept_license: acceptLicense === true };
  if (!/^https?:\/\//.test(name)) {
    if (sha256 !== undefined || as !== undefined)
      throw usageFailure('Use --sha256 and --as with an address only, such as "https://example.com/m.gguf"');
    return { id: checkedModelId(name), body: accept };
  }
  if (!URL.canParse(name)) throw usageFailure(`"${name}" is not a valid address`);
  if (sha256 === undefined)
    throw usageFailure('Write the SHA-256 of the file with --sha256: a file from an address is only fetched if its hash is known');
  const { hostname, pathname } = new URL(name);
  return { id: checkedModelId(as ?? `url/${hostname}/${path.posix.basename(pathname)}`), body: { ...accept, url: name, sha256 } };
}

/** Interrupting it leaves the download running: the service fetches, not this program. */
async function untilPulled(cli: Cli, client: Client, id: string): Promise<void> {
  try {
    for (;;) {
      const { pulls } = await client.request('GET', '/api/pulls', PullsAnswer);
      const pull = pulls.find(({ model }) => model === id);
      if (pull?.failed === true)
        throw new CliFailure(withoutControls(pull.message ?? 'The download has failed'), {
          hint: 'The next "svcctl model pull" resumes it',
        });
      if (pull === undefined) return await checkPresent(client, id);
      const share = shareOf(pull.done_bytes, pull.total_bytes);
      const text = withoutControls(`${pull.what}: ${transferText(pull.done_bytes, pull.total_bytes)}${speedText(pull)}`);
      cli.terminal.progress({ text, step: `${pull.what} ${Math.floor(10 * (share ?? 0))}`, share });
      await sleep(client.pollMs);
    }
  } finally {
    cli.terminal.endProgress();
  }
}

async function checkPresent(client: Client, id: string): Promise<void> {
  const { models } = await client.request('GET', '/api/models', ModelsAnswer);
  const model = models.find((each) => each.id === id);
  if (model?.present === true) return;
  throw new CliFailure(model?.reason ?? `The model "${id}" was not fetched`, { hint: `Try again with "svcctl model pull ${id}"` });
}
