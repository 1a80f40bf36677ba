/**
 * The schema and the CEL rules of an InferencePool as the inference extension of the Gateway API publishes them (api/v1/inferencepool_types.go,
 * release 1.5, where an endpoint picker became optional). No package has them.
 */
import { z } from 'zod';

const DNS_SUBDOMAIN = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;
const Port = z.strictObject({ number: z.int().min(1).max(65_535) });

const EndpointPicker = z
  .strictObject({
    group: z.union([z.literal(''), z.string().max(253).regex(DNS_SUBDOMAIN)]).default(''),
    kind: z
      .string()
      .min(1)
      .max(63)
      .regex(/^[a-zA-Z]([-a-zA-Z0-9]*[a-zA-Z0-9])?$/)
      .default('Service'),
    name: z.string().min(1).max(253),
    port: Port.optional(),
    failureMode: z.enum(['FailOpen', 'FailClose']).default('FailClose'),
  })
  .refine(({ kind, port }) => kind !== 'Service' || port !== undefined, 'port is required when kind is "Service" or unspecified');

const InferencePool = z.strictObject({
  apiVersion: z.literal('inference.networking.k8s.io/v1'),
  kind: z.literal('InferencePool'),
  metadata: z.looseObject({ name: z.string().min(1).max(253).regex(DNS_SUBDOMAIN) }),
  spec: z.strictObject({
    selector: z.strictObject({
      matchLabels: z.record(
        z.string().min(1),
        z
          .string()
          .max(63)
          .regex(/^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$/),
      ),
    }),
    targetPorts: z
      .array(Port)
      .min(1)
      .max(8)
      .refine((ports) => new Set(ports.map(({ number }) => number)).size === ports.length, 'port number must be unique'),
    appProtocol: z.enum(['http', 'kubernetes.io/h2c']).default('http'),
    endpointPickerRef: EndpointPicker.optional(),
  }),
});

/** Returns what is wrong with an InferencePool; undefined: nothing. */
export function inferencePoolProblem(object: unknown): string | undefined {
  const { error } = InferencePool.safeParse(object);
  return error && z.prettifyError(error);
}
