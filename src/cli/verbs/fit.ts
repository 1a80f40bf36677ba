/** `svcctl fit MODEL`: whether a model would fit into the memory of the machine on which the service runs. */
import type { Cli } from '../cli.ts';
import { FitAnswer } from '../connect/api-answers.ts';
import type { ServiceOptions } from '../connect/service-options.ts';
import { EXIT, usageFailure, type ExitCode } from '../output/exit-codes.ts';
import { cellText, dataText, listText, type Output } from '../output/output.ts';
import { sizeText } from '../output/quantities-text.ts';
import { withoutControls } from '../output/terminal.ts';

export interface FitOptions extends ServiceOptions {
  readonly backend?: string;
  readonly output: Output;
}

/** Here, `--context` is that of the model. The one of a kubeconfig has no use: in a cluster, the service cannot answer. */
export async function runFit(cli: Cli, options: FitOptions, model: string): Promise<ExitCode> {
  const { context, backend, output, ...service } = options;
  if (context !== undefined && !/^[1-9][0-9]{1,7}$/.test(context))
    throw usageFailure(`Write --context as a number of tokens, such as 32768, not "${context}"`);
  const client = await cli.connect(service);
  const query = new URLSearchParams({
    model,
    ...(context === undefined ? {} : { context }),
    ...(backend === undefined ? {} : { backend }),
  });
  const answer = await client.request('GET', `/api/fit?${query.toString()}`, FitAnswer);
  const data = await dataText(output, answer);
  await cli.terminal.write(data ?? `${withoutControls(answer.message)}\n${await quantisationsText(cli, output, answer)}`);
  return answer.fits ? EXIT.done : EXIT.failed;
}

async function quantisationsText({ terminal }: Cli, output: Output, { quantisations }: FitAnswer): Promise<string> {
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

type Quantisation = FitAnswer['quantisations'][number];
