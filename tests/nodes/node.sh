#!/bin/bash
# Process 1 of a node: its end ends everything on it. It runs in mount, network, process, host name, IPC and cgroup
# namespaces of its own, with a root file system of Debian's packages that keeps nothing. Of this machine it sees the
# paths in BINDS, at the same places.
#
# usage: node.sh import|run NAME   with the environment that tests/nodes/node.py gives
set -euo pipefail
mode=$1 name=$2
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
hostname "$name"

if [ "$mode" != import ] && [ "$mode" != run ]; then
  echo "usage: node.sh import|run NAME" >&2
  exit 2
fi

new=$FOLDER/system
mkdir -p "$new"
mount -t tmpfs -o mode=755 tmpfs "$new"
mkdir "$new/upper" "$new/work" "$new/root"
mount -t overlay -o "lowerdir=$SYSTEM,upperdir=$new/upper,workdir=$new/work" overlay "$new/root"
for path in $BINDS; do
  if [ -d "$path" ]; then
    mkdir -p "$new/root$path"
  else
    mkdir -p "$(dirname "$new/root$path")"
    touch "$new/root$path"
  fi
  mount --bind "$path" "$new/root$path"
done
mount --rbind /dev "$new/root/dev"
mkdir -p "$new/root/old"
cd "$new/root"
pivot_root . old
mount -t proc proc /proc
mount -t sysfs sysfs /sys
umount --lazy /old

# Mounted inside the cgroup namespace, so that their root is the node's.
mount -t tmpfs -o mode=755 cgroup /sys/fs/cgroup
for hierarchy in $HIERARCHIES; do # FOLDER:OPTION
  folder=${hierarchy%%:*} option=${hierarchy#*:}
  mkdir "/sys/fs/cgroup/$folder"
  case $option in
    "") mount -t cgroup2 cgroup2 "/sys/fs/cgroup/$folder" ;;
    name=*) mount -t cgroup -o "none,$option" cgroup "/sys/fs/cgroup/$folder" ;;
    *) mount -t cgroup -o "$option" cgroup "/sys/fs/cgroup/$folder" ;;
  esac
  for controller in ${option//,/ }; do
    [ -e "/sys/fs/cgroup/${controller#name=}" ] || ln -s "$folder" "/sys/fs/cgroup/$controller"
  done
done

mkdir -p /var/lib/kubelet /var/log/pods /var/log/containers
mount --bind "$FOLDER/kubelet" /var/lib/kubelet
mount --make-rshared /
ip link set lo up

containerd -c "$FOLDER/containerd.toml" >"$LOGS/$name-containerd.log" 2>&1 &
containerd=$!
until ctr version >/dev/null 2>&1; do
  kill -0 $containerd 2>/dev/null || { echo "containerd ended" >&2; exit 1; }
  sleep 0.1
done

if [ "$mode" = import ]; then
  for archive in $ARCHIVES; do
    ctr --namespace k8s.io images import "$archive"
  done
  kill $containerd
  wait $containerd || true
  exit 0
fi

until ip -4 -o address show dev eth0 2>/dev/null | grep -q inet; do
  sleep 0.05
done
sysctl -q -w net.ipv4.ip_forward=1
# Answers between two pods of a node pass its bridge, where a Service's address has to be put back.
[ ! -e /proc/sys/net/bridge ] || sysctl -q -w net.bridge.bridge-nf-call-iptables=1

"$KUBE_PROXY" --kubeconfig="$FOLDER/kube-proxy.kubeconfig" --proxy-mode=nftables --hostname-override="$name" \
  --cluster-cidr="$POD_NETWORK" --conntrack-max-per-core=0 --nodeport-addresses=primary \
  >"$LOGS/$name-kube-proxy.log" 2>&1 &
"$KUBELET" --config="$FOLDER/kubelet.yaml" --kubeconfig="$FOLDER/kubelet.kubeconfig" --node-ip="$ADDRESS" \
  --hostname-override="$name" --root-dir=/var/lib/kubelet --v=2 >"$LOGS/$name-kubelet.log" 2>&1 &

wait -n || true
echo "one of containerd, kube-proxy and kubelet ended" >&2
exit 1
