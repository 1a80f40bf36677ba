/** The part of podman's answer to `inspect` that is used. Podman 4.3 to 5.8 answer alike. */
import { z } from 'zod';

const PortBindings = z.record(z.string(), z.array(z.object({ HostIp: z.string(), HostPort: z.string() })).nullable());

export const ContainerInspect = z.object({
  Id: z.string().min(1),
  Name: z.string(),
  Image: z.string(),
  Path: z.string(),
  Args: z.array(z.string()).nullable(),
  State: z.object({
    Status: z.string(),
    OOMKilled: z.boolean().default(false),
    ExitCode: z.number(),
    Error: z.string().default(''),
    StartedAt: z.string(),
    FinishedAt: z.string(),
  }),
  Config: z.object({
    Env: z.array(z.string()).nullable(),
    Labels: z.record(z.string(), z.string()).nullable(),
  }),
  HostConfig: z.object({
    PortBindings: PortBindings.nullable(),
    Devices: z.array(z.object({ PathOnHost: z.string(), PathInContainer: z.string() })).nullish(),
    Memory: z.number().default(0),
  }),
  Mounts: z.array(
    z.object({
      Type: z.string(),
      Name: z.string().optional(),
      Source: z.string().default(''),
      Destination: z.string(),
      RW: z.boolean(),
    }),
  ),
});
export type ContainerInspect = z.output<typeof ContainerInspect>;

/** What is necessary to interpret the answer, besides the answer itself. */
export interface InspectContext {
  readonly instance: string;
  /** The image's own environment as `NAME=value`. If it is undefined, the environment of the container is unknown too. */
  readonly imageEnv: readonly string[] | undefined;
  /** Rootless podman bind-mounts device nodes and does not report them. */
  readonly rootless: boolean;
}
