/** Security contexts of the pods of a slot and of their containers. */
import { z } from 'zod';
import { NumericId } from './pod/kube-fields.ts';

const Confinement = z.strictObject({
  type: z.enum(['RuntimeDefault', 'Localhost', 'Unconfined']).describe('Which profile is used'),
  localhostProfile: z.string().min(1).max(253).optional().describe('Name of a profile on the node, for "Localhost"'),
});

/** What a pod and a container have in common. */
const SHARED = {
  runAsUser: NumericId.optional().describe('User id of the processes'),
  runAsGroup: NumericId.optional().describe('Group id of the processes'),
  runAsNonRoot: z
    .boolean()
    .optional()
    .describe('Whether user 0 is refused. Default: true, except where the devices of a GPU belong to root'),
  seLinuxOptions: z
    .strictObject({
      level: z.string().max(253).optional().describe('SELinux level'),
      role: z.string().max(253).optional().describe('SELinux role'),
      type: z.string().max(253).optional().describe('SELinux type'),
      user: z.string().max(253).optional().describe('SELinux user'),
    })
    .optional()
    .describe('SELinux labels of the processes'),
  seccompProfile: Confinement.optional().describe('System calls that are allowed. Default: "RuntimeDefault"'),
  appArmorProfile: Confinement.optional().describe(
    'AppArmor profile, for Kubernetes 1.30 and newer. Default: that of the container runtime',
  ),
};

const Capability = z
  .string()
  .max(63)
  .regex(/^[A-Z0-9_]+$/, 'Write the name of a capability, such as "SYS_NICE" or "ALL"');

export const PodSecurity = z.strictObject({
  ...SHARED,
  fsGroup: NumericId.optional().describe('Group that owns the volumes'),
  fsGroupChangePolicy: z
    .enum(['OnRootMismatch', 'Always'])
    .optional()
    .describe('When the owner of the files in a volume is changed. Default: "OnRootMismatch"'),
  supplementalGroups: z
    .array(NumericId)
    .max(50)
    .optional()
    .describe('Further groups of the processes, such as the one that owns the devices of a GPU'),
});

export const ContainerSecurity = z.strictObject({
  ...SHARED,
  allowPrivilegeEscalation: z.boolean().optional().describe('Whether a process may gain more rights than its parent has. Default: false'),
  privileged: z
    .boolean()
    .optional()
    .describe('Whether the container may do what root of the node may. Default: false, except with device files'),
  readOnlyRootFilesystem: z.boolean().optional().describe('Whether the files of the image are read-only. Default: true'),
  capabilities: z
    .strictObject({
      add: z.array(Capability).max(50).optional().describe('Capabilities that are added. Default: none'),
      drop: z.array(Capability).max(50).optional().describe('Capabilities that are removed. Default: "ALL"'),
    })
    .optional()
    .describe('Capabilities of the processes'),
});
