package conformance

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

// Does to pods what a node would do, so far as an API server can see it: they run, and end when they are deleted.
// What it writes also keeps revisions moving, as in every cluster that lives.
func standInForANode(kubeconfig string) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		panic(err)
	}
	client := kubernetes.NewForConfigOrDie(config)
	for beat := time.Now(); ; beat = <-time.After(500 * time.Millisecond) {
		ctx := context.Background()
		tick := []byte(`{"metadata":{"annotations":{"beat":"` + beat.Format(time.RFC3339Nano) + `"}}}`)
		// Whatever fails is tried again with the next beat.
		_, _ = client.CoreV1().Namespaces().Patch(ctx, "default", "application/merge-patch+json", tick, metav1.PatchOptions{})
		pods, err := client.CoreV1().Pods("").List(ctx, metav1.ListOptions{})
		if err != nil {
			continue
		}
		for _, pod := range pods.Items {
			tend(ctx, client, &pod)
		}
	}
}

func tend(ctx context.Context, client kubernetes.Interface, pod *corev1.Pod) {
	pods := client.CoreV1().Pods(pod.Namespace)
	if pod.DeletionTimestamp != nil {
		now := int64(0)
		_ = pods.Delete(ctx, pod.Name, metav1.DeleteOptions{GracePeriodSeconds: &now})
		return
	}
	if pod.Status.Phase == corev1.PodRunning {
		return
	}
	pod.Status.Phase = corev1.PodRunning
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	_, _ = pods.UpdateStatus(ctx, pod, metav1.UpdateOptions{})
}
