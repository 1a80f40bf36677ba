/** `svcctl model pull|rm` and `svcctl fit`. */
import path from 'node:path';
import { sleep } from '../../platform/clock.ts';
import type { Answer } from '../connect/api-answers.ts';
import { checkedModelId, type Client } from '../connect/client.ts';
import type { ServiceOptions } from '../connect/service-options.ts';
import { CliFailure, EXIT, usageFailure, type ExitCode } from '../output/exit-codes.ts';
import { cellText, dataText, listText, sizeText, type Output, type OutputOptions } from '../output/output.ts';
import { shareOf, speedText, transferText } from '../output/slot-progress.ts';
import { withoutControls } from '../output/terminal.ts';
import type { Cli } from '../verb.ts';

export interface PullOptions extends ServiceOptions {
  readonly acceptLicense?: boolean;
  readonly acceptNew?: boolean;
  readonly sha256?: string;
  readonly as?: string;
  /** False with `--no-wait`. */
  readonly wait: boolean;
}

export async function runModelPull(cli: Cli, options: PullOptions, name: string): Promise<void> {
  const { id, body } = requestOf(options, name);
  const client = await cli.connect(options);
  const { accepted = [] } = await client.request('POST', `/api/models/${encodeURIComponent(id)}/pull`, 'pullStarted', { body });
  for (const file of accepted) cli.terminal.line(withoutControls(`accepted ${file.url} with ${file.size_bytes} bytes`));
  if (!options.wait) return cli.terminal.line(`model/${id} pulling; watch it with "svcctl get pulls"`);
  await untilPulled(cli, client, id);
  cli.terminal.line(`model/${id} present`);
}

export async function runModelRemove(cli: Cli, options: ServiceOptions, ...names: string[]): Promise<void> {
  const ids = names.map(checkedModelId);
  const client = await cli.connect(options);
  for (const id of ids) {
    await client.request('DELETE', `/api/models/${encodeURIComponent(id)}`, 'anything');
    cli.terminal.line(`model/${id} removed`);
  }
}

function requestOf({ acceptLicense, acceptNew, sha256, as }: PullOptions, name: string): { readonly id: string; readonly body: unknown } {
  // A service of an older version refuses keys that it does not know.
  const accept = { accept_license: acceptLicense === true, ...(acceptNew === true ? { accept_new: true } : {}) };
  if (!/^https?:\/\//.test(name)) {
    if (sha256 !== undefined || as !== undefined) throw usageFailure('--sha256 and --as need a URL, such as "https://example.com/m.gguf"');
    return { id: checkedModelId(name), body: accept };
  }
  if (!URL.canParse(name)) throw usageFailure(`Invalid URL "${name}"`);
  if (sha256 === undefined) throw usageFailure('A download from a URL needs a checksum', 'Set the SHA-256 of the file with --sha256');
  const { hostname, pathname } = new URL(name);
  return { id: checkedModelId(as ?? `url/${hostname}/${path.posix.basename(pathname)}`), body: { ...accept, url: name, sha256 } };
}

/** The service downloads, so an interrupt leaves the download running. */
async function untilPulled(cli: Cli, client: Client, id: string): Promise<void> {
  try {
    for (;;) {
      const { pulls } = await client.request('GET', '/api/pulls', 'pulls');
      const pull = pulls.find(({ model }) => model === id);
      if (pull?.failed === true)
        throw new CliFailure(withoutControls(pull.message ?? 'The download failed'), {
          hint: 'Run "svcctl model pull" again to resume it',
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
  const { models } = await client.request('GET', '/api/models', 'models');
  const model = models.find((each) => each.id === id);
  if (model?.present === true) return;
  throw new CliFailure(model?.reason ?? `Model "${id}" was not downloaded`, { hint: `Try again with "svcctl model pull ${id}"` });
}

/** `--context` is the context length: in a cluster, the service has no answer anyway. */
export async function runFit(cli: Cli, options: OutputOptions & { readonly backend?: string }, model: string): Promise<ExitCode> {
  const { context, backend, output, ...service } = options;
  if (context !== undefined && !/^[1-9][0-9]{1,7}$/.test(context))
    throw usageFailure(`Invalid --context "${context}": use a number of tokens, such as 32768`);
  const client = await cli.connect(service);
  const query = new URLSearchParams({
    model,
    ...(context === undefined ? {} : { context }),
    ...(backend === undefined ? {} : { backend }),
  });
  const answer = await client.request('GET', `/api/fit?${query.toString()}`, 'fit');
  const data = await dataText(output, answer);
  await cli.terminal.write(data ?? `${withoutControls(answer.message)}\n${await quantisationsText(cli, output, answer)}`);
  return answer.fits ? EXIT.done : EXIT.failed;
}

async function quantisationsText({ terminal }: Cli, output: Output, { quantisations }: Answer<'fit'>): Promise<string> {
  const rows = {
    key: 'quantisations',
    items: quantisations,
    columns: [
      { title: 'MODEL', cell: ({ name }: Quantisation) => cellText(name) },
      { title: 'SIZE', cell: (each: Quantisation) => sizeText(each.size_bytes) },
      { title: 'MEMORY', cell: (each: Quantisation) => sizeText(each.needed_bytes) },
      { title: 'FITS', cell: ({ fits }: Quantisation) => (fits ? 'yes' : 'no') },
    ],
  };
  return quantisations.length <= 1 ? '' : listText(terminal, output, rows);
}

type Quantisation = Answer<'fit'>['quantisations'][number];
