// Follows the ConfigMaps of a namespace that carry a label with a shared informer of client-go, and prints one line of
// JSON for everything that happens: each list and watch of the reflector below, each event that a watch brings, each
// call of the handlers, and, whenever it reads "store", what the informer's store holds. Between "hold" and "go" it takes
// nothing from the server.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
)

const namespace = "default"

// One line of what is printed.
type line struct {
	What  string            `json:"what"`
	Type  string            `json:"type,omitempty"`
	Name  string            `json:"name,omitempty"`
	RV    string            `json:"rv,omitempty"`
	Store map[string]string `json:"store,omitempty"`
}

var printing sync.Mutex

// Whoever goes on takes it for a moment; while it is held, nothing is taken from the server.
var going sync.Mutex

func goOn() {
	going.Lock()
	going.Unlock()
}

func tell(one line) {
	text, err := json.Marshal(one)
	if err != nil {
		panic(err)
	}
	printing.Lock()
	defer printing.Unlock()
	fmt.Println(string(text))
}

// Tells every event on its way from the server to the reflector.
func overheard(inner watch.Interface) watch.Interface {
	return watch.Filter(inner, func(event watch.Event) (watch.Event, bool) {
		goOn()
		if object, ok := event.Object.(*corev1.ConfigMap); ok {
			tell(line{What: "event", Type: string(event.Type), Name: object.Name, RV: object.ResourceVersion})
		} else {
			tell(line{What: "event", Type: string(event.Type)})
		}
		return event, true
	})
}

func followed(client kubernetes.Interface, label string) cache.ListerWatcher {
	maps := client.CoreV1().ConfigMaps(namespace)
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			goOn()
			options.LabelSelector = label
			list, err := maps.List(ctx, options)
			if err == nil {
				tell(line{What: "list", RV: list.ResourceVersion})
			}
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			goOn()
			options.LabelSelector = label
			seconds := int64(3)
			options.TimeoutSeconds = &seconds
			inner, err := maps.Watch(ctx, options)
			if err != nil {
				return nil, err
			}
			kind := "from"
			if options.SendInitialEvents != nil && *options.SendInitialEvents {
				kind = "all"
			}
			tell(line{What: "watch", Type: kind, RV: options.ResourceVersion})
			return overheard(inner), nil
		},
	}
}

func handled(what string, object any) {
	if tombstone, ok := object.(cache.DeletedFinalStateUnknown); ok {
		what, object = "lost", tombstone.Obj
	}
	if found, ok := object.(*corev1.ConfigMap); ok {
		tell(line{What: what, Name: found.Name, RV: found.ResourceVersion})
	}
}

func main() {
	config, err := clientcmd.BuildConfigFromFlags("", os.Args[1])
	if err != nil {
		panic(err)
	}
	config.QPS, config.Burst, config.Timeout = 100, 100, 0
	client := kubernetes.NewForConfigOrDie(config)
	informer := cache.NewSharedIndexInformer(followed(client, os.Args[2]), &corev1.ConfigMap{}, 0, cache.Indexers{})
	_, err = informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { handled("add", object) },
		UpdateFunc: func(_, object any) { handled("update", object) },
		DeleteFunc: func(object any) { handled("delete", object) },
	})
	if err != nil {
		panic(err)
	}
	stop := make(chan struct{})
	go informer.Run(stop)
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		switch lines.Text() {
		case "hold":
			going.Lock()
			continue
		case "go":
			going.Unlock()
			continue
		}
		store := map[string]string{}
		for _, object := range informer.GetStore().List() {
			found := object.(*corev1.ConfigMap)
			store[found.Name] = found.ResourceVersion
		}
		tell(line{What: "store", Store: store})
	}
	close(stop)
	time.Sleep(100 * time.Millisecond)
}
