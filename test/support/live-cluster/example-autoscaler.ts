/** The HorizontalPodAutoscaler of manifests/autoscaling, as a test applies it. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parse } from 'yaml';
import { z } from 'zod';
import { kubectl } from '../require/require-cluster.ts';

const EXAMPLE = join(import.meta.dirname, '../../../manifests/autoscaling/horizontal-pod-autoscaler.yaml');
const VERSIONS = ['autoscaling/v2', 'autoscaling/v2beta2'] as const;

const Events = z.object({ items: z.array(z.object({ count: z.number() })) });

const Autoscaler = z.looseObject({
  spec: z.looseObject({
    metrics: z.tuple([z.looseObject({ external: z.looseObject({ target: z.looseObject({ averageValue: z.string() }) }) })]),
    behavior: z.unknown(),
  }),
});

export interface Autoscaling {
  readonly namespace: string;
  /** Requests for each replica. */
  readonly averageValue: number;
}

/** As JSON, in the newest version that the cluster serves, and without the pauses for which users would wait minutes. */
export async function exampleAutoscaler({ namespace, averageValue }: Autoscaling): Promise<string> {
  const served = (await kubectl(['api-versions'])).split('\n');
  const { spec, ...rest } = Autoscaler.parse(parse(await readFile(EXAMPLE, 'utf8')));
  const [metric] = spec.metrics;
  const { external } = metric;
  const atOnce = { stabilizationWindowSeconds: 0, policies: [{ type: 'Percent', value: 400, periodSeconds: 15 }] };
  return JSON.stringify({
    ...rest,
    apiVersion: VERSIONS.find((version) => served.includes(version)),
    metadata: { name: 'primary', namespace },
    spec: {
      ...spec,
      metrics: [{ ...metric, external: { ...external, target: { ...external.target, averageValue: String(averageValue) } } }],
      behavior: { scaleUp: atOnce, scaleDown: atOnce },
    },
  });
}

/** How often the autoscaler says that it changed the number of replicas. */
export async function rescales(namespace: string, autoscaler: string): Promise<number> {
  const selector = `involvedObject.kind=HorizontalPodAutoscaler,involvedObject.name=${autoscaler},reason=SuccessfulRescale`;
  const { items } = Events.parse(
    JSON.parse(await kubectl(['--namespace', namespace, 'get', 'events', '--field-selector', selector, '--output', 'json'])),
  );
  return items.reduce((sum, { count }) => sum + count, 0);
}
